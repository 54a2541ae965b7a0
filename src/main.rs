//! The `assay` program: everything is in the library.

fn main() -> std::process::ExitCode {
    assay::cli::main()
}
