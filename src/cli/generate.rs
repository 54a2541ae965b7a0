//! `assay schema`, `completions` and `man`: texts that follow from the code. Copies in `docs/` are kept in step by tests.

use super::args::{Completions, Man, Schema, SchemaOf, command};
use super::error::{Code, Failure};
use super::output;
use crate::spec;

pub(super) fn schema(args: &Schema) -> Result<Code, Failure> {
    output::json(&match args.of {
        SchemaOf::Experiment => spec::experiment_schema(),
        SchemaOf::Inventory => spec::inventory_schema(),
    })?;
    Ok(Code::Fine)
}

pub(super) fn completions(args: &Completions) -> Result<Code, Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "assay", &mut bytes);
    output::print(&String::from_utf8_lossy(&bytes))?;
    Ok(Code::Fine)
}

pub(super) fn man(args: &Man) -> Result<Code, Failure> {
    let mut all = command();
    all.build();
    let page = match &args.command {
        None => all.clone(),
        Some(name) => match all.find_subcommand(name) {
            Some(found) if !found.is_hide_set() => found.clone(),
            _ => {
                return Err(
                    Failure::new(Code::Usage, format!("there is no command `{name}`"))
                        .hint("`assay --help` lists the commands"),
                );
            }
        },
    };
    let mut bytes = Vec::new();
    clap_mangen::Man::new(page)
        .date("")
        .source(concat!("assay ", env!("CARGO_PKG_VERSION")))
        .render(&mut bytes)
        .map_err(|e| Failure::from_error(Code::Internal, &e))?;
    output::print(&String::from_utf8_lossy(&bytes))?;
    Ok(Code::Fine)
}
