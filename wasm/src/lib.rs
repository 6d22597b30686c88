//! tallylock-wasm
