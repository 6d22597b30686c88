//! The command line, parsed into what it means.

use lexopt::{Arg, Parser, ValueExt};
use std::error::Error;
use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

pub(crate) const USAGE: &str = "\
usage: tallylock-wasm-bindgen --target TARGET --out-dir DIR --out-name NAME INPUT.wasm
  TARGET  web, bundler, nodejs (as an ES module), or module (source phase import)
  NAME    the stem of the generated files: NAME.js, NAME.d.ts, NAME_bg.wasm";

/// What the program was asked to do.
pub(crate) enum Command {
    /// Show the usage.
    Help,
    /// Generate glue.
    Generate(Arguments),
}

/// What to generate, from what, and where.
pub(crate) struct Arguments {
    pub(crate) input: PathBuf,
    pub(crate) out_dir: PathBuf,
    pub(crate) out_name: String,
    pub(crate) target: Target,
}

/// How the glue finds its wasm file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Web,
    Bundler,
    NodeJs,
    Module,
}

impl Target {
    fn from_name(name: &str) -> Result<Self, String> {
        match name {
            "web" => Ok(Self::Web),
            "bundler" => Ok(Self::Bundler),
            "nodejs" => Ok(Self::NodeJs),
            "module" => Ok(Self::Module),
            other => Err(format!("unknown target {other:?}")),
        }
    }

    /// Tells the generator which kind of glue to write.
    pub(crate) fn select(self, bindgen: &mut Bindgen) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Web => bindgen.web(true)?,
            Self::Bundler => bindgen.bundler(true)?,
            Self::NodeJs => bindgen.nodejs_module(true)?,
            Self::Module => bindgen.module(true)?,
        };
        Ok(())
    }
}

/// Reads the command line; each argument must be given once.
pub(crate) fn parse(mut parser: Parser) -> Result<Command, Box<dyn Error>> {
    let (mut input, mut out_dir, mut out_name, mut target) = (None, None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Long("target") => target = Some(Target::from_name(&parser.value()?.string()?)?),
            Arg::Long("out-dir") => out_dir = Some(PathBuf::from(parser.value()?)),
            Arg::Long("out-name") => out_name = Some(parser.value()?.string()?),
            Arg::Value(path) if input.is_none() => input = Some(PathBuf::from(path)),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Generate(Arguments {
        input: input.ok_or("INPUT.wasm is missing")?,
        out_dir: out_dir.ok_or("--out-dir is missing")?,
        out_name: out_name.ok_or("--out-name is missing")?,
        target: target.ok_or("--target is missing")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Command, Target, parse};
    use lexopt::Parser;

    fn refusal(arguments: &[&str]) -> String {
        match parse(Parser::from_args(arguments)) {
            Ok(_) => panic!("accepted {arguments:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn reads_a_whole_command_line() {
        let line = [
            "--target",
            "web",
            "--out-dir=dist",
            "--out-name",
            "glue",
            "in.wasm",
        ];
        let Ok(Command::Generate(arguments)) = parse(Parser::from_args(line)) else {
            panic!("refused {line:?}");
        };
        assert_eq!(arguments.target, Target::Web);
        assert_eq!(arguments.out_name, "glue");
        assert_eq!(arguments.out_dir.as_os_str(), "dist");
        assert_eq!(arguments.input.as_os_str(), "in.wasm");
    }

    #[test]
    fn names_what_is_wrong() {
        assert!(refusal(&["--target", "deno"]).contains("deno"));
        assert!(refusal(&["a.wasm", "b.wasm"]).contains("b.wasm"));
        assert!(refusal(&["a.wasm", "--target", "web", "--out-dir", "d"]).contains("--out-name"));
    }
}
