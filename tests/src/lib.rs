//! tallylock-testkit
