//! Generates the JavaScript and TypeScript glue of a wasm file.
//!
//! It does what wasm-bindgen's command line does, by the same library, so that its version is pinned by the same
//! lock file as the `wasm-bindgen` that the crate was compiled with: the two must be equal to the last digit.
#![forbid(unsafe_code)]

mod arguments;

use arguments::{Arguments, Command, USAGE};
use std::error::Error;
use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments = match arguments::parse(lexopt::Parser::from_env()) {
        Ok(Command::Help) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(Command::Generate(arguments)) => arguments,
        Err(error) => {
            eprintln!("tallylock-wasm-bindgen: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match generate(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "tallylock-wasm-bindgen: {}: {error}",
                arguments.input.display()
            );
            ExitCode::FAILURE
        }
    }
}

fn generate(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut bindgen = Bindgen::new();
    arguments.target.select(&mut bindgen)?;
    bindgen
        .input_path(&arguments.input)
        .out_name(&arguments.out_name)
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&arguments.out_dir)?;
    Ok(())
}
