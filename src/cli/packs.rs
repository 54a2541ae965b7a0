//! `assay packs`: what systems there are, what their packs say, and whether they are sound.

use serde_json::{Value, json};

use super::args::{Global, PackCheck, PackFolder, PackShow, PacksCommand};
use super::error::{Code, Failure};
use super::output;
use crate::pack::{CONTEXT, PackError, Packs, context_of};

pub(super) fn packs(global: &Global, command: &PacksCommand) -> Result<Code, Failure> {
    match command {
        PacksCommand::List(folder) => list(global, folder),
        PacksCommand::Show(args) => show(global, args),
        PacksCommand::Check(args) => check(global, args),
    }
}

fn beside(folder: &PackFolder) -> Packs {
    Packs::beside(&folder.beside)
}

fn list(global: &Global, folder: &PackFolder) -> Result<Code, Failure> {
    let packs = beside(folder);
    let mut found = Vec::new();
    for system in packs.systems() {
        let pack = packs.get(&system)?;
        found.push(json!({
            "system": system,
            "description": pack.form.description,
            "versions": pack.form.versions,
            "roles": pack.form.roles.keys().collect::<Vec<_>>(),
            "folder": pack.folder,
        }));
    }
    if global.json {
        output::json(&found)?;
        return Ok(Code::Fine);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let width = found
        .iter()
        .map(|p| text(&p["system"]).len())
        .max()
        .unwrap_or(0);
    for pack in &found {
        let from = pack["folder"]
            .as_str()
            .map(|f| format!("  ({f})"))
            .unwrap_or_default();
        let (system, what) = (text(&pack["system"]), text(&pack["description"]));
        output::line(output::clean(&format!("{system:<width$}  {what}{from}")))?;
    }
    Ok(Code::Fine)
}

fn show(global: &Global, args: &PackShow) -> Result<Code, Failure> {
    let packs = beside(&args.folder);
    let pack = packs.get(&args.system)?;
    if let Some(file) = &args.file {
        let Some(text) = pack.templates.get(file) else {
            let known: Vec<&str> = pack.templates.keys().map(String::as_str).collect();
            let message = format!("the pack of {} has no file `{file}`", pack.name);
            return Err(Failure::new(Code::Usage, message)
                .hint(format!("its files are {}", known.join(", "))));
        };
        output::print(text)?;
        return Ok(Code::Fine);
    }
    if args.context {
        let roles = context_of(&pack.form);
        if global.json {
            output::json(&json!({ "common": CONTEXT, "roles": roles }))?;
            return Ok(Code::Fine);
        }
        output::line("every template sees")?;
        for (name, what) in CONTEXT {
            output::line(format_args!("  {name:<14} {what}"))?;
        }
        for (role, names) in roles {
            output::line(format_args!("{role} also sees {}", names.join(", ")))?;
        }
        return Ok(Code::Fine);
    }
    if global.json {
        output::json(&json!({
            "system": pack.name,
            "folder": pack.folder,
            "pack": pack.form,
            "files": pack.templates.keys().collect::<Vec<_>>(),
        }))?;
    } else {
        let text = serde_saphyr::to_string(&pack.form);
        output::print(&text.map_err(|e| Failure::from_error(Code::Internal, &e))?)?;
    }
    Ok(Code::Fine)
}

fn check(global: &Global, args: &PackCheck) -> Result<Code, Failure> {
    let packs = beside(&args.folder);
    let systems = match &args.systems[..] {
        [] => packs.systems(),
        some => some.to_vec(),
    };
    let mut problems = Vec::new();
    for system in &systems {
        match packs.get(system) {
            Ok(_) => {}
            Err(PackError::Wrong { source, .. }) => problems.push(source),
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(first) = problems.first() {
        for more in &problems[1..] {
            output::say(more);
        }
        return Err(Failure::refused(first));
    }
    if global.json {
        output::json(&json!({ "problems": [], "systems": systems }))?;
    } else if !global.quiet {
        let sound = match systems.len() {
            1 => "the pack is sound".to_owned(),
            n => format!("{n} packs are sound"),
        };
        output::line(sound)?;
    }
    Ok(Code::Fine)
}
