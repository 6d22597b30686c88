//! The built command against real servers: what it prints, how it ends, and what it never shows.

mod audit;
mod counters;
mod doctor;
mod ends;
mod locks;
mod million;
mod passwords;
mod run;
mod terminal;
mod watch;
