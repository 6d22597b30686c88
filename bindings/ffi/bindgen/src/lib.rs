//! The generator of the Python and Kotlin glue for `tallylock-ffi`.
//!
//! It is a library too because packagers of source distributions follow dependencies, and only a library can be one.
#![forbid(unsafe_code)]

/// Does what the command line says: `generate --library PATH --language LANGUAGE --out-dir FOLDER`.
pub fn run() {
    uniffi::uniffi_bindgen_main();
}
