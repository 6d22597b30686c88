//! tallylock
