//! tallylock-ffi-bindgen
