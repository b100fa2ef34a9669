//! Query parameters: Google's system parameters, each with or without a `$` in front, are taken and, but for
//! one, not used. Others are refused.

use axum::extract::Query;
use http::Uri;

use crate::error::{Error, quoted};
use crate::wire::json::Enums;

/// Parameters that every Google API has.
const SYSTEM: [&str; 11] = [
    "alt",
    "prettyPrint",
    "fields",
    "key",
    "access_token",
    "oauth_token",
    "quotaUser",
    "callback",
    "uploadType",
    "upload_protocol",
    ".xgafv",
];

/// How the caller wants enums: as numbers with `$alt=json;enum-encoding=int`, else by name.
pub(super) fn enums(query: &str) -> Result<Enums, Error> {
    if query.is_empty() {
        return Ok(Enums::Names);
    }
    let uri = Uri::try_from(format!("/?{query}"));
    let unreadable = || Error::bad_request("", "Invalid query string received.");
    let Query(parameters): Query<Vec<(String, String)>> =
        Query::try_from_uri(&uri.map_err(|_| unreadable())?).map_err(|_| unreadable())?;
    let mut enums = Enums::Names;
    for (name, value) in parameters {
        let bare = name.strip_prefix('$').unwrap_or(&name);
        if !SYSTEM.contains(&bare) {
            let name = quoted(&name);
            return Err(Error {
                says_where: true,
                ..Error::bad_request(
                    name.clone(),
                    // Google's words.
                    format!(
                        "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. \
                         Field '{name}' could not be found in request message."
                    ),
                )
            });
        }
        if bare == "alt" {
            let mut parts = value.split(';').map(str::trim);
            let json = parts.next().is_some_and(|format| format.eq_ignore_ascii_case("json"));
            enums = if json && parts.any(|part| part.eq_ignore_ascii_case("enum-encoding=int")) {
                Enums::Numbers
            } else {
                Enums::Names
            };
        }
    }
    Ok(enums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_value_of_one_parameter_changes_the_answer() {
        for query in
            ["$alt=json;enum-encoding=int", "%24alt=json%3Benum-encoding%3Dint", "alt=json;enum-encoding=int"]
        {
            assert_eq!(enums(query).unwrap(), Enums::Numbers, "{query}");
        }
        for query in
            ["", "alt=json", "$alt=json", "prettyPrint=false&key=k", "$.xgafv=2&.xgafv=1&$quotaUser=u"]
        {
            assert_eq!(enums(query).unwrap(), Enums::Names, "{query}");
        }
    }

    #[test]
    fn a_parameter_that_google_does_not_have_is_refused_by_name() {
        let error = enums("alt=json&foo=bar").unwrap_err();
        assert_eq!(
            error.text(),
            "Invalid JSON payload received. Unknown name \"foo\": Cannot bind query parameter. Field 'foo' could \
             not be found in request message."
        );
    }
}
