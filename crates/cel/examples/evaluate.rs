//! Compiles an expression once and evaluates it with several values.
//!
//! `cargo run -p pintle-cel --example evaluate`

use cel::{Environment, Program, Type, Val, estimate, to_json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = Environment::standard().variable("name", Type::String).variable("replicas", Type::Int);
    let checked = env.check("replicas > 3 ? name.upperAscii() : 'few'")?;
    println!("type {}, at most {} cost units", checked.output_type().format(""), estimate(&env, &checked).max);

    let program = Program::new(&env, &checked)?;
    for (name, replicas) in [("web", 5), ("db", 1)] {
        let outcome = program.eval(&[("name", Val::string(name)), ("replicas", Val::Int(replicas))], 1_000);
        println!("{name}: {} for {} cost units", to_json(&outcome.result?)?, outcome.cost);
    }

    // errors are displayed with the source of the expression
    if let Err(error) = env.check("replicas + name") {
        println!("{error}");
    }
    Ok(())
}
