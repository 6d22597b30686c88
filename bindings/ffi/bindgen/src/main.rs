//! `uniffi-bindgen`, the name that maturin looks for.
#![forbid(unsafe_code)]

fn main() {
    tallylock_ffi_bindgen::run();
}
