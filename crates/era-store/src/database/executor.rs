//! Connections that say every statement in their database's words.
//!
//! They stand where `sqlx`'s own pool and transaction would: `query.execute(pool)` and
//! `query.fetch_all(&mut *transaction)` are written as ever.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::{BoxStream, StreamExt, once};
use sqlx::any::{AnyArguments, AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::error::BoxDynError;
use sqlx::{Any, AnyPool, Either, Error, Execute, Executor, SqlStr};

use super::Dialect;

/// Some connections. A clone shares.
#[derive(Clone, Debug)]
pub struct ConnectionPool {
    pub(super) connections: AnyPool,
    pub(super) dialect: Dialect,
    statements: Arc<AtomicU64>,
}

impl ConnectionPool {
    pub(super) fn new(connections: AnyPool, dialect: Dialect) -> ConnectionPool {
        ConnectionPool { connections, dialect, statements: Arc::default() }
    }

    /// How many statements it was handed.
    pub(super) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Which database it leads to.
    #[cfg(test)]
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Begins a transaction. It is undone unless it is committed.
    pub async fn begin(&self) -> Result<Transaction, Error> {
        let inner = self.connections.begin().await?;
        let (dialect, statements) = (self.dialect, self.statements.clone());
        Ok(Transaction(Connection { inner, dialect, statements }))
    }
}

/// A transaction under way.
#[derive(Debug)]
pub struct Transaction(Connection);

impl Transaction {
    /// Makes it count.
    pub async fn commit(self) -> Result<(), Error> {
        self.0.inner.commit().await
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

/// The one connection of a transaction.
#[derive(Debug)]
pub struct Connection {
    inner: sqlx::Transaction<'static, Any>,
    dialect: Dialect,
    statements: Arc<AtomicU64>,
}

impl Connection {
    /// Which database it leads to.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// A statement in its database's words, with its values.
struct BoundStatement {
    sql: SqlStr,
    arguments: Option<AnyArguments>,
    persistent: bool,
}

impl BoundStatement {
    fn new<'q>(
        dialect: Dialect,
        statements: &AtomicU64,
        mut query: impl Execute<'q, Any>,
    ) -> Result<BoundStatement, Error> {
        statements.fetch_add(1, Ordering::Relaxed);
        let arguments = query.take_arguments().map_err(Error::Encode)?;
        let persistent = query.persistent();
        Ok(BoundStatement { sql: dialect.said(query.sql()), arguments, persistent })
    }
}

impl<'q> Execute<'q, Any> for BoundStatement {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&AnyStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<AnyArguments>, BoxDynError> {
        Ok(self.arguments.take())
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}

type Step = Result<Either<AnyQueryResult, AnyRow>, Error>;

/// The two are alike but for the connection that they hand a statement to.
macro_rules! executor {
    ($of:ty, |$self:ident| $inner:expr) => {
        impl<'c> Executor<'c> for $of {
            type Database = Any;

            fn fetch_many<'e, 'q: 'e, E>($self, query: E) -> BoxStream<'e, Step>
            where
                'c: 'e,
                E: 'q + Execute<'q, Any>,
            {
                match BoundStatement::new($self.dialect, &$self.statements, query) {
                    Ok(said) => $inner.fetch_many(said),
                    Err(error) => once(ready(Err(error))).boxed(),
                }
            }

            fn fetch_optional<'e, 'q: 'e, E>(
                $self,
                query: E,
            ) -> BoxFuture<'e, Result<Option<AnyRow>, Error>>
            where
                'c: 'e,
                E: 'q + Execute<'q, Any>,
            {
                match BoundStatement::new($self.dialect, &$self.statements, query) {
                    Ok(said) => $inner.fetch_optional(said),
                    Err(error) => ready(Err(error)).boxed(),
                }
            }

            fn prepare_with<'e>(
                $self,
                sql: SqlStr,
                parameters: &'e [AnyTypeInfo],
            ) -> BoxFuture<'e, Result<AnyStatement, Error>>
            where
                'c: 'e,
            {
                $inner.prepare_with($self.dialect.said(sql), parameters)
            }
        }
    };
}

executor!(&'c ConnectionPool, |self| (&self.connections));
executor!(&'c mut Connection, |self| (&mut *self.inner));
