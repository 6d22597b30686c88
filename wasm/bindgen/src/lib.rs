//! tallylock-wasm-bindgen
