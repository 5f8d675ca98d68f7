//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}"));
    // Every task is started by a process of this program, and scripts call it in a loop. Loaded
    // anywhere, it has a fifth of a megabyte of addresses to mend before its first instruction,
    // which is half of what a short command takes; loaded where it was linked for, none. Stack,
    // heap and libraries lie at random places all the same.
    if target("OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
