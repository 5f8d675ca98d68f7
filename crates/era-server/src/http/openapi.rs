//! The OpenAPI document: what handlers declare, and what is the same for all of them: problem
//! details for every failure, how to authenticate, and idempotency keys on creations.

use std::collections::BTreeSet;

use utoipa::openapi::path::{HttpMethod, Operation, Parameter, ParameterIn};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, PathItem, Ref, RefOr, Required, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::caller::COOKIE_SECURE;
use super::idempotency;

/// The document as a text that is committed, and that programs read.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

/// The document of all routes.
pub fn document() -> OpenApi {
    let (_, document) = super::all().split_for_parts();
    complete(document)
}

/// Adds what is the same for all operations.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    document.info = InfoBuilder::new()
        .title("ERA")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Economic scheduling and deep learning on GPU clusters."))
        .license(Some(utoipa::openapi::License::new("Apache-2.0")))
        .build();
    let components = document.components.get_or_insert_default();
    let mut schemas = vec![(
        era_api::Problem::name().into_owned(),
        <era_api::Problem as PartialSchema>::schema(),
    )];
    <era_api::Problem as ToSchema>::schemas(&mut schemas);
    for (name, schema) in schemas {
        components.schemas.entry(name).or_insert(schema);
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("era_…").build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    let cookie = ApiKey::Cookie(ApiKeyValue::new(COOKIE_SECURE));
    components.add_security_scheme("session", SecurityScheme::ApiKey(cookie));
    document.security = Some(vec![
        SecurityRequirement::new("token", Vec::<String>::new()),
        SecurityRequirement::new("session", Vec::<String>::new()),
    ]);
    // What the router takes as the rest of a path is a parameter like any other to a reader.
    document.paths.paths = std::mem::take(&mut document.paths.paths)
        .into_iter()
        .map(|(path, item)| (path.replace("{*", "{"), item))
        .collect();
    for (path, item) in &mut document.paths.paths {
        each_operation(item, |method, operation| {
            // Handlers of different files share names such as `list`; generated clients need one
            // name for each operation.
            operation.operation_id = Some(operation_name(&method, path));
            operation.responses.responses.insert("default".to_owned(), problem());
            if method == HttpMethod::Post && idempotency::takes_key(path) {
                operation.parameters.get_or_insert_default().push(RefOr::T(key()));
            }
        });
    }
    document
}

/// `get_jobs_id_logs` for `GET /api/v1/jobs/{id}/logs`.
fn operation_name(method: &HttpMethod, path: &str) -> String {
    let method = method_name(method);
    let path = path.strip_prefix(era_api::PREFIX).unwrap_or(path);
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.to_owned(), |name, word| format!("{name}_{word}"))
}

fn method_name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "get",
        HttpMethod::Put => "put",
        HttpMethod::Post => "post",
        HttpMethod::Delete => "delete",
        HttpMethod::Head => "head",
        HttpMethod::Patch => "patch",
        HttpMethod::Options => "options",
        HttpMethod::Trace => "trace",
    }
}

/// The operations that read a query, such as `GET /api/v1/jobs`, with paths as the router has them.
pub(super) fn with_query(mut document: OpenApi) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let in_query = |one: &RefOr<Parameter>| match one {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => false,
    };
    for (path, item) in &mut document.paths.paths {
        each_operation(item, |method, operation| {
            if operation.parameters.iter().flatten().any(in_query) {
                found.insert(format!("{} {path}", method_name(&method).to_uppercase()));
            }
        });
    }
    found
}

fn each_operation(item: &mut PathItem, mut act: impl FnMut(HttpMethod, &mut Operation)) {
    let all = [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Delete, &mut item.delete),
        (HttpMethod::Patch, &mut item.patch),
        (HttpMethod::Head, &mut item.head),
    ];
    for (method, operation) in all {
        if let Some(operation) = operation {
            act(method, operation);
        }
    }
}

fn problem() -> RefOr<utoipa::openapi::Response> {
    let schema = Ref::from_schema_name(era_api::Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new()
        .description("What is wrong, and what would be right.")
        .content("application/problem+json", content)
        .build();
    RefOr::T(response)
}

fn key() -> Parameter {
    let mut key = Parameter::new(idempotency::HEADER);
    key.parameter_in = ParameterIn::Header;
    key.required = Required::False;
    key.description = Some("Makes a repetition harmless: the same answer is given again.".into());
    key.schema = Some(
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some("^[!-~]+$"))
            .min_length(Some(1))
            .max_length(Some(255))
            .into(),
    );
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_documents_its_failures() {
        let mut document = document();
        let mut count = 0;
        for (path, item) in &mut document.paths.paths {
            each_operation(item, |_, operation| {
                count += 1;
                assert!(operation.responses.responses.contains_key("default"), "{path}");
            });
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn every_creation_takes_a_key_once_but_those_whose_answers_are_not_kept() {
        let mut document = document();
        for (path, item) in &mut document.paths.paths {
            each_operation(item, |method, operation| {
                let taken = operation.parameters.iter().flatten();
                let keys = taken.filter(|one| match one {
                    RefOr::T(parameter) => parameter.name == idempotency::HEADER,
                    RefOr::Ref(_) => false,
                });
                let makes = method == HttpMethod::Post && idempotency::takes_key(path);
                assert_eq!(keys.count(), usize::from(makes), "{path}");
            });
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut document = document();
        let mut names = BTreeSet::new();
        for (path, item) in &mut document.paths.paths {
            each_operation(item, |_, operation| {
                let name = operation.operation_id.clone().unwrap_or_default();
                assert!(names.insert(name.clone()), "{path}: {name} is another's name too");
            });
        }
        assert!(names.contains("get_jobs_id_logs"));
    }

    #[test]
    fn the_committed_document_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        if std::env::var_os("ERA_WRITE_OPENAPI").is_some() {
            std::fs::write(file, text()).unwrap();
        }
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            committed == text(),
            "docs/openapi.json is stale: run `ERA_WRITE_OPENAPI=1 cargo test -p era-server openapi`"
        );
    }
}
