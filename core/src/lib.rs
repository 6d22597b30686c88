//! tallylock-core
