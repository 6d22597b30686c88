//! Generates the Python and Kotlin glue for `tallylock-ffi`: `uniffi-bindgen generate --library ... --language ...`.
#![forbid(unsafe_code)]

fn main() {
    uniffi::uniffi_bindgen_main();
}
