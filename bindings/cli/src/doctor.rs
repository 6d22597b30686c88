//! `tallylock doctor`: whether servers are fit for counters and locks.

mod account;
mod clock;
mod finding;
mod settings;

use std::io::Write;

use serde::Serialize;
use tallylock::blocking::{Client, PlainConnection};
use tallylock::{Error, Options};

use crate::arguments::DoctorArguments;
use crate::output::json;
use crate::server::Url;
use crate::status::{Failure, Status};
use clock::Clock;
use finding::{Finding, Level};

pub(crate) fn run(arguments: &DoctorArguments, output: &mut dyn Write) -> Result<Status, Failure> {
    let prefix = arguments.prefix.as_encoded_bytes();
    if prefix.windows(3).any(|window| window == b"://") {
        return Err(Failure::usage(
            "--prefix is what keys begin with, and no URL",
        ));
    }
    let urls = match &arguments.urls[..] {
        [] => vec![Url::from_environment()?],
        urls => urls.to_vec(),
    };
    let options: Vec<Options> = urls
        .iter()
        .map(|url| arguments.patience.options(url))
        .collect::<Result<_, _>>()?;

    let (mut servers, mut clocks, mut unreachable) = (Vec::new(), Vec::new(), Vec::new());
    for options in &options {
        let findings = match examine(options, prefix, &mut clocks) {
            Ok(findings) => findings,
            Err(error) => {
                let finding = finding::unreachable(&error);
                unreachable.push(error);
                vec![finding]
            }
        };
        servers.push(Examined {
            server: options.server(),
            findings,
        });
    }
    if unreachable.len() == servers.len() {
        // There is nothing to tell of any server but why.
        return Err(unreachable.swap_remove(0).into());
    }
    let together = clock::difference(&clocks);
    let report = Report {
        worst: servers
            .iter()
            .flat_map(|server| &server.findings)
            .chain(&together)
            .map(|finding| finding.level)
            .max()
            .unwrap_or(Level::Ok),
        servers,
        together: together.into_iter().collect(),
    };
    if arguments.json {
        json(output, &report)?;
    } else {
        report.print(output)?;
    }
    Ok(match report.worst {
        Level::Problem => Status::Problems,
        Level::Warning if arguments.strict => Status::Nothing,
        _ => Status::Fine,
    })
}

/// The document of `doctor --json`.
#[derive(Serialize)]
struct Report {
    worst: Level,
    servers: Vec<Examined>,
    /// What concerns all servers.
    together: Vec<Finding>,
}

#[derive(Serialize)]
struct Examined {
    server: String,
    findings: Vec<Finding>,
}

/// Looks at one server; fails only if it cannot be talked to.
fn examine(
    options: &Options,
    prefix: &[u8],
    clocks: &mut Vec<Clock>,
) -> Result<Vec<Finding>, Error> {
    let mut plain = PlainConnection::open(options)?;
    let client = Client::connect_with(options.clone())?;
    let mut findings = settings::findings(&mut plain)?;
    findings.extend(account::findings(&mut plain, &client, prefix)?);
    findings.push(clock::latency(&mut plain)?);
    clocks.extend(Clock::read(&options.server(), &mut plain)?);
    Ok(findings)
}

impl Report {
    fn print(&self, output: &mut dyn Write) -> std::io::Result<()> {
        for server in &self.servers {
            writeln!(output, "{}", server.server)?;
            for finding in &server.findings {
                finding.print(output)?;
            }
        }
        if !self.together.is_empty() {
            writeln!(output, "all of them")?;
            for finding in &self.together {
                finding.print(output)?;
            }
        }
        Ok(())
    }
}
