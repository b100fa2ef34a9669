//! Azure OpenAI: chat completions under Azure's addresses.
//!
//! Newer style: `{resource}/openai/v1/chat/completions` with the deployment as `model`. Older style, chosen by
//! the setting `api_version`: `{resource}/openai/deployments/{deployment}/chat/completions?api-version=DATE`.
//! The base address is the resource; one that already ends in `/openai` or `/openai/v1` is understood.

use bytes::Bytes;
use http::{Request, Response};

use super::{KeyHeader, Provider, Target, body_of, openai};
use crate::judge::secret::Secret;
use crate::judge::settings::{Auth, Environment, JudgeSettings, SettingsError, TokenLimitName};
use crate::judge::{JudgeError, Question, Reply};

/// A deployment on Azure.
#[derive(Debug)]
pub struct Azure {
    target: Target,
    limit_name: TokenLimitName,
    key_header: KeyHeader,
}

impl Azure {
    /// # Errors
    /// The first setting that cannot be used.
    pub fn new(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Self, SettingsError> {
        let base = settings.base()?.to_string();
        let mut resource = base.trim_end_matches('/');
        for known in ["/v1", "/openai"] {
            resource = resource.strip_suffix(known).unwrap_or(resource);
        }
        let path = match &settings.api_version {
            None => "/openai/v1/chat/completions".to_owned(),
            Some(version) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
                if version.is_empty() || !version.chars().all(plain) {
                    return Err(settings.error("api_version", "is no version such as 2024-10-21"));
                }
                if !settings.model.chars().all(plain) {
                    return Err(settings.error("model", "is no deployment name"));
                }
                format!("/openai/deployments/{}/chat/completions?api-version={version}", settings.model)
            }
        };
        let mut at_resource = settings.clone();
        at_resource.base_url = Some(resource.to_owned());
        Ok(Self {
            target: Target::new(&at_resource, environment, &path)?,
            limit_name: settings.max_tokens_field.unwrap_or(TokenLimitName::MaxCompletionTokens),
            key_header: KeyHeader::new(settings.auth.unwrap_or(Auth::ApiKey), "api-key"),
        })
    }
}

impl Provider for Azure {
    fn request(&self, question: &Question, key: Option<&Secret>) -> Result<Request<Bytes>, JudgeError> {
        let body = openai::body(&self.target, self.limit_name, question)?;
        self.target.post(body, key, self.key_header.clone())
    }

    fn reply(&self, response: Response<Bytes>) -> Result<Reply, JudgeError> {
        openai::reply(&body_of(&response)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::testing::{body_json, everything, settings};

    fn asked(text: &str) -> Request<Bytes> {
        let provider =
            Azure::new(&settings(&format!("provider = 'azure'\nmodel = 'd-1'\n{text}")), &|_| None);
        provider.unwrap().request(&everything(), Some(&Secret::new("k"))).unwrap()
    }

    #[test]
    fn the_newer_style_names_the_deployment_in_the_body() {
        for base in ["https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/"] {
            let request = asked(&format!("base_url = '{base}'"));
            assert_eq!(request.uri(), "https://r.openai.azure.com/openai/v1/chat/completions");
            assert_eq!(request.headers()["api-key"], "k");
            assert_eq!(request.headers().get("authorization"), None);
            assert_eq!(body_json(&request)["model"], "d-1");
            assert_eq!(body_json(&request)["max_completion_tokens"], 300);
        }
    }

    #[test]
    fn the_older_style_names_it_in_the_address() {
        let request = asked("base_url = 'https://r.openai.azure.com'\napi_version = '2024-10-21'");
        let expected =
            "https://r.openai.azure.com/openai/deployments/d-1/chat/completions?api-version=2024-10-21";
        assert_eq!(request.uri(), expected);
    }

    #[test]
    fn an_entra_token_goes_as_bearer() {
        let request = asked("base_url = 'https://r.openai.azure.com'\nauth = 'bearer'");
        assert_eq!(request.headers()["authorization"], "Bearer k");
        assert_eq!(request.headers().get("api-key"), None);
    }
}
