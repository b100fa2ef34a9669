//! What a path asks for.
//!
//! `/v1beta1/projects/{project}/locations/{location}:evaluateInstances`, the same with a slash before the
//! colon, which one SDK sends, and without project and location, with or without that slash. The colon may
//! be percent-encoded. `v1` has only `evaluateInstances`, and only with project and location.

/// A method of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rpc {
    EvaluateInstances,
    GenerateInstanceRubrics,
    EvaluateDataset,
}

/// A method, and where the caller thinks it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) rpc: Rpc,
    /// `projects/*/locations/*`.
    pub(super) location: Option<String>,
}

impl Target {
    /// `None` = nothing is there.
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.replace("%3A", ":").replace("%3a", ":");
        let (resource, verb) = path.rsplit_once(':')?;
        let resource = resource.strip_suffix('/').unwrap_or(resource);
        let mut segments = resource.strip_prefix('/')?.split('/');
        let newest = match segments.next()? {
            "v1beta1" => true,
            "v1" => false,
            _ => return None,
        };
        let location = match (segments.next(), segments.next(), segments.next(), segments.next()) {
            (None, ..) => None,
            (Some("projects"), Some(project), Some("locations"), Some(location))
                if segments.next().is_none() && !project.is_empty() && !location.is_empty() =>
            {
                Some(format!("projects/{project}/locations/{location}"))
            }
            _ => return None,
        };
        let rpc = match verb {
            "evaluateInstances" if newest || location.is_some() => Rpc::EvaluateInstances,
            "generateInstanceRubrics" if newest => Rpc::GenerateInstanceRubrics,
            "evaluateDataset" if newest => Rpc::EvaluateDataset,
            _ => return None,
        };
        Some(Self { rpc, location })
    }

    /// The same for all callers of a method, whatever the version, the project and the location.
    pub(super) fn route(&self) -> &'static str {
        match self.rpc {
            Rpc::EvaluateInstances => "/{version}/{location}:evaluateInstances",
            Rpc::GenerateInstanceRubrics => "/{version}/{location}:generateInstanceRubrics",
            Rpc::EvaluateDataset => "/{version}/{location}:evaluateDataset",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_path_is_understood() {
        for colon in [":", "%3A", "%3a", "/:", "/%3A"] {
            for (verb, rpc) in [
                ("evaluateInstances", Rpc::EvaluateInstances),
                ("generateInstanceRubrics", Rpc::GenerateInstanceRubrics),
                ("evaluateDataset", Rpc::EvaluateDataset),
            ] {
                let location = Some(String::from("projects/p-1/locations/global"));
                assert_eq!(
                    Target::of(&format!("/v1beta1/projects/p-1/locations/global{colon}{verb}")),
                    Some(Target { rpc, location: location.clone() })
                );
                assert_eq!(
                    Target::of(&format!("/v1beta1{colon}{verb}")),
                    Some(Target { rpc, location: None })
                );
                let in_v1 = Target::of(&format!("/v1/projects/p-1/locations/global{colon}{verb}"));
                assert_eq!(in_v1, (rpc == Rpc::EvaluateInstances).then_some(Target { rpc, location }));
            }
        }
    }

    #[test]
    fn a_project_may_hold_a_colon() {
        let target =
            Target::of("/v1/projects/example.com:p/locations/us-central1:evaluateInstances").unwrap();
        assert_eq!(target.location.as_deref(), Some("projects/example.com:p/locations/us-central1"));
    }

    #[test]
    fn anything_else_is_nothing() {
        for path in [
            "/",
            "",
            ":evaluateInstances",
            "/:evaluateInstances",
            "/v1:evaluateInstances",
            "/v2/projects/p/locations/l:evaluateInstances",
            "/v1beta1/projects/p/locations/l",
            "/v1beta1/projects/p/locations/l:evaluate",
            "/v1beta1/projects/p/locations/l:evaluateinstances",
            "/v1beta1/projects/p/locations/l/evaluateInstances",
            "/v1beta1/projects/p/locations/l//:evaluateInstances",
            "/v1beta1/projects//locations/l:evaluateInstances",
            "/v1beta1/projects/p/locations/:evaluateInstances",
            "/v1beta1/projects/p/locations/l/x:evaluateInstances",
            "/v1beta1/projects/p:evaluateInstances",
            "/v1beta1//projects/p/locations/l:evaluateInstances",
        ] {
            assert_eq!(Target::of(path), None, "{path}");
        }
    }
}
