//! What `covary select` was asked for.

use covary::MixturePpca;
use covary::estimator::Groups;
use covary::model::kind;
use covary::select::{Select as Asked, SelectGroups};
use covary_io::TripleColumns;

use super::Pass;
use crate::exit::{Failure, Result};
use crate::flags::{self, Noise};

/// What `select` works with.
pub(crate) struct Select {
    pub(crate) pass: Pass,
    pub(crate) select: Asked,
    /// What is asked instead of models with groups.
    pub(crate) groups: Option<GroupsOf>,
    /// The columns that say who, what and how much, if the data give one cell in each row.
    pub(crate) triples: Option<TripleColumns>,
    /// Whether to go on without features that were never observed.
    pub(crate) drop_empty: bool,
    pub(crate) json: bool,
}

/// How many groups.
pub(crate) enum GroupsOf {
    /// Of a mixture, and how many latent variables in each.
    Mixture(Box<SelectGroups>),
    /// Of k-means.
    KMeans(Groups),
}

impl Select {
    pub(crate) fn resolve(flags: flags::Select) -> Result<Self> {
        let groups = groups_of(&flags)?;
        let mut select = Asked::new().seed(flags.seed).cells(flags.cells);
        if let Some(folds) = flags.folds {
            select = select.folds(folds);
        }
        if let Some(max) = flags.max {
            select = select.max(max);
        }
        let (drop_empty, json) = (flags.drop_empty, flags.json);
        let pass = Pass::resolve(flags.pass);
        Ok(Self { pass, select, groups, triples: flags.triples, drop_empty, json })
    }
}

/// What is asked of a model with groups; `None` for components of PPCA.
fn groups_of(flags: &flags::Select) -> Result<Option<GroupsOf>> {
    let misused = |used: bool, flag: &str, kind: &str| match used {
        true => Err(Failure::usage(format!("{flag} is for --model {kind}"))),
        false => Ok(()),
    };
    if flags.model == &kind::MIXTURE {
        let diagonal = flags.noise == Some(Noise::Diagonal);
        let family = MixturePpca::new(1, 0).diagonal(diagonal).shared_noise(flags.shared_noise);
        let mut select = SelectGroups::new(family).seed(flags.seed).cells(flags.cells);
        if let Some(groups) = flags.groups {
            let (fewest, most) = groups.range();
            select = select.groups(if fewest < most { fewest..=most } else { 1..=most });
        }
        select = flags.max.map_or(select.clone(), |most| select.most_latent(most));
        select = flags.folds.map_or(select.clone(), |folds| select.folds(folds));
        return Ok(Some(GroupsOf::Mixture(Box::new(select))));
    }
    misused(flags.noise.is_some(), "--noise", "mixture")?;
    misused(flags.shared_noise, "--shared-noise", "mixture")?;
    if flags.model == &kind::KMEANS {
        misused(flags.max.is_some(), "--max", "ppca or mixture; give the numbers of clusters with -k")?;
        misused(flags.cells, "--cells", "ppca or mixture")?;
        misused(flags.folds.is_some(), "--folds", "ppca or mixture")?;
        let groups = match flags.groups.unwrap_or(Groups::AUTO) {
            Groups::Count(most) => Groups::Between(1, most),
            range @ Groups::Between(..) => range,
        };
        return Ok(Some(GroupsOf::KMeans(groups)));
    }
    misused(flags.groups.is_some(), "-k", "mixture or kmeans")?;
    if flags.model != &kind::PPCA {
        return Err(Failure::usage(format!(
            "select chooses for ppca, mixture and kmeans; covary fit --model {} -q auto chooses by itself",
            flags.model.name
        )));
    }
    Ok(None)
}
