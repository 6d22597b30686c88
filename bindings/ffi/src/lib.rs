//! tallylock-ffi
