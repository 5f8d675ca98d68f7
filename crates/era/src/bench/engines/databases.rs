//! MariaDB and PostgreSQL: durable submissions in a second, from 64 clients through the real
//! server. Each database server is started for it, and waits for the disk as a site's would.

use anyhow::Result;
use era_store::Dialect;
use era_store::trial::{Server, make_database};
use serde_json::{Map, Value, json};

use crate::bench::server::submissions_on;

/// Everything that is measured of databases.
pub(super) fn measure() -> Result<Map<String, Value>> {
    let mut report = Map::new();
    for (name, dialect) in [("mariadb", Dialect::MySql), ("postgres", Dialect::Postgres)] {
        let folder = tempfile::Builder::new().prefix("era-bench-").tempdir()?;
        let key = format!("{name}_submits_per_second");
        match Server::start(dialect, folder.path(), true) {
            Ok(server) => report.insert(key, json!(submits(&server)?.round())),
            Err(why) => {
                report.insert(format!("{name}_missing"), why.to_string().into());
                report.insert(key, Value::Null)
            }
        };
    }
    Ok(report)
}

fn submits(server: &Server) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        make_database(&server.url(), "era").await?;
        submissions_on(&format!("{}/era", server.url())).await
    })
}
