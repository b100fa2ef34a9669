//! Several endpoints of one judge: the list `[[judges.endpoints]]`.
//!
//! ```toml
//! [[judges]]
//! provider = "openai"
//! model = "qwen2.5"
//! [[judges.endpoints]]
//! base_url = "http://10.0.0.1:8000/v1"
//! [[judges.endpoints]]
//! base_url = "http://10.0.0.2:8000/v1"
//! [[judges.endpoints]]
//! name = "cloud"
//! priority = 1
//! base_url = "https://api.openai.com/v1"
//! key_env = "OPENAI_API_KEY"
//! ```
//!
//! What an endpoint does not say is what its judge says. All of them speak the judge's wire and are meant to answer alike:
//! an answer of one stands for an answer of any.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Auth, JudgeSettings, SettingsError};
use crate::judge::pool::Terms;

/// Most endpoints of one judge.
const MOST_ENDPOINTS: usize = 64;

/// One of several endpoints of a judge.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointSettings {
    /// The name that errors and telemetry use behind that of the judge. Default: its number, from 1.
    pub name: String,
    /// Endpoints of a higher number are asked only while none of a lower one can be. Default 0.
    pub priority: u32,
    /// As the judge's.
    pub base_url: Option<String>,
    /// As the judge's; for `azure` deployments that are called otherwise here.
    pub model: Option<String>,
    /// As the judge's. A key named here takes the place of one named there.
    pub key_env: Option<String>,
    /// As the judge's.
    pub key_file: Option<PathBuf>,
    /// As the judge's.
    pub auth: Option<Auth>,
    /// As the judge's.
    pub ca_file: Option<PathBuf>,
    /// As the judge's.
    pub script: Option<PathBuf>,
    /// As the judge's.
    pub timeout_seconds: Option<f64>,
    /// As the judge's.
    pub max_concurrency: Option<u32>,
    /// As the judge's.
    pub requests_per_minute: Option<u32>,
    /// As the judge's.
    pub tokens_per_minute: Option<u32>,
}

impl JudgeSettings {
    /// Each endpoint as a judge of its own, with its place in the pool; one without a name where none are listed.
    ///
    /// # Errors
    /// Two endpoints of one name, or too many.
    pub(crate) fn each_endpoint(&self) -> Result<Vec<(Terms, Self)>, SettingsError> {
        if self.endpoints.is_empty() {
            return Ok(vec![(self.terms("", 0), self.clone())]);
        }
        if self.endpoints.len() > MOST_ENDPOINTS {
            return Err(self.error("endpoints", format!("are more than {MOST_ENDPOINTS}")));
        }
        if self.base_url.is_some() {
            return Err(self.error("base_url", "cannot stand beside endpoints, each has its own"));
        }
        let mut names = BTreeSet::new();
        let mut all = Vec::with_capacity(self.endpoints.len());
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let number = (index + 1).to_string();
            let name = if endpoint.name.is_empty() { &number } else { &endpoint.name };
            if !names.insert(name.clone()) {
                return Err(self.error("endpoints", format!("two of them have the name {name:?}")));
            }
            let alone = self.with(endpoint, name);
            all.push((alone.terms(name, endpoint.priority), alone));
        }
        Ok(all)
    }

    fn with(&self, endpoint: &EndpointSettings, name: &str) -> Self {
        let names_key = endpoint.key_env.is_some() || endpoint.key_file.is_some();
        let (key_env, key_file) = if names_key {
            (endpoint.key_env.clone(), endpoint.key_file.clone())
        } else {
            (self.key_env.clone(), self.key_file.clone())
        };
        Self {
            name: format!("{}.endpoints.{name}", self.name),
            endpoints: Vec::new(),
            base_url: endpoint.base_url.clone(),
            model: endpoint.model.clone().unwrap_or_else(|| self.model.clone()),
            key_env,
            key_file,
            auth: endpoint.auth.or(self.auth),
            ca_file: endpoint.ca_file.clone().or_else(|| self.ca_file.clone()),
            script: endpoint.script.clone().or_else(|| self.script.clone()),
            timeout_seconds: endpoint.timeout_seconds.unwrap_or(self.timeout_seconds),
            max_concurrency: endpoint.max_concurrency.unwrap_or(self.max_concurrency),
            requests_per_minute: endpoint.requests_per_minute.or(self.requests_per_minute),
            tokens_per_minute: endpoint.tokens_per_minute.or(self.tokens_per_minute),
            ..self.clone()
        }
    }

    fn terms(&self, name: &str, priority: u32) -> Terms {
        Terms {
            name: name.into(),
            priority,
            max_concurrency: self.max_concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(text: &str) -> Result<Vec<(Terms, JudgeSettings)>, String> {
        let head = "name = 'main'\nprovider = 'openai'\nmodel = 'm'\nmax_concurrency = 8\n";
        let settings: JudgeSettings = toml::from_str(&format!("{head}{text}")).unwrap();
        settings.check().and_then(|()| settings.each_endpoint()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_judge_without_a_list_is_its_own_endpoint() {
        let all = endpoints("base_url = 'http://h'\nrequests_per_minute = 90").unwrap();
        let [(terms, alone)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*terms.name, terms.max_concurrency, terms.requests_per_minute), ("", 8, Some(90)));
        assert_eq!(alone.name, "main");
    }

    #[test]
    fn an_endpoint_says_only_what_is_different() {
        let all = endpoints(
            "key_env = 'K'\n[[endpoints]]\nbase_url = 'http://a'\n\
             [[endpoints]]\nname = 'cloud'\nbase_url = 'http://b'\npriority = 1\nkey_file = 'f'\n\
             model = 'n'\nmax_concurrency = 2\ntokens_per_minute = 5000",
        )
        .unwrap();
        let [(first, plain), (second, cloud)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*first.name, first.priority, first.max_concurrency), ("1", 0, 8));
        assert_eq!((plain.key_env.as_deref(), plain.model.as_str()), (Some("K"), "m"));
        assert_eq!((&*second.name, second.priority, second.max_concurrency), ("cloud", 1, 2));
        assert_eq!(second.tokens_per_minute, Some(5000));
        assert_eq!((cloud.key_env.as_deref(), cloud.model.as_str()), (None, "n"));
        assert!(cloud.key_file.is_some());
    }

    #[test]
    fn a_wrong_endpoint_is_named() {
        for (list, message) in [
            (
                "base_url = 'http://h'\n[[endpoints]]\nbase_url = 'http://a'",
                "judges.main.base_url: cannot stand beside endpoints, each has its own",
            ),
            (
                "[[endpoints]]\nname = 'x'\nbase_url = 'http://a'\n[[endpoints]]\nname = 'x'\nbase_url = 'http://b'",
                "judges.main.endpoints: two of them have the name \"x\"",
            ),
            (
                "[[endpoints]]\nbase_url = 'http://a'\n[[endpoints]]\nbase_url = 'ftp://b'",
                "judges.main.endpoints.2.base_url: must begin with http:// or https:// and name a host",
            ),
            (
                "[[endpoints]]\nbase_url = 'http://a'\nrequests_per_minute = 0",
                "judges.main.endpoints.1.requests_per_minute: must be at least 1",
            ),
        ] {
            assert_eq!(endpoints(list).unwrap_err(), message);
        }
    }
}
