//! What `covary select` was asked for.

use covary::estimator::Groups;
use covary::model::kind;
use covary::select::{Select as Asked, SelectGroups, SelectKernel};
use covary::{KernelPca, MixturePpca};
use covary_io::TripleColumns;

use super::Pass;
use crate::exit::{Failure, Result};
use crate::flags::{self, Noise};
use crate::kinds::with_kernel;

/// What `select` works with.
pub(crate) struct Select {
    pub(crate) pass: Pass,
    pub(crate) select: Asked,
    /// What is asked instead of models with groups.
    pub(crate) groups: Option<GroupsOf>,
    /// What is asked instead of kernel PCA.
    pub(crate) kernel: Option<SelectKernel>,
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
        let kernel = kernel_of(&flags)?;
        let groups = if kernel.is_some() { None } else { groups_of(&flags)? };
        let mut select = Asked::new().seed(flags.seed).cells(flags.cells);
        if let Some(folds) = flags.folds {
            select = select.folds(folds);
        }
        if let Some(max) = flags.max {
            select = select.max(max);
        }
        let (drop_empty, json) = (flags.drop_empty, flags.json);
        let pass = Pass::resolve(flags.pass);
        Ok(Self { pass, select, groups, kernel, triples: flags.triples, drop_empty, json })
    }
}

/// What is asked of kernel PCA.
fn kernel_of(flags: &flags::Select) -> Result<Option<SelectKernel>> {
    let kernel = &flags.kernel;
    if kernel.landmarks.is_some() {
        return Err(Failure::usage("select looks at some of the rows; --landmarks is for covary fit"));
    }
    if flags.model != &kind::KPCA {
        let given = [
            ("--kernel", kernel.kernel.is_some()),
            ("--gamma", kernel.gamma.is_some()),
            ("--degree", kernel.degree.is_some()),
            ("--coef0", kernel.coef0.is_some()),
        ];
        return match given.iter().find(|(_, used)| *used) {
            Some((flag, _)) => Err(Failure::usage(format!("{flag} is for --model kpca"))),
            None => Ok(None),
        };
    }
    let of_others = [
        ("-k", flags.groups.is_some(), "mixture or kmeans"),
        ("--noise", flags.noise.is_some(), "mixture"),
        ("--shared-noise", flags.shared_noise, "mixture"),
        ("--folds", flags.folds.is_some(), "ppca or mixture"),
        ("--cells", flags.cells, "ppca or mixture"),
    ];
    if let Some((flag, _, kinds)) = of_others.iter().find(|(_, used, _)| *used) {
        return Err(Failure::usage(format!("{flag} is for --model {kinds}")));
    }
    let select = SelectKernel::new(with_kernel(KernelPca::new(1), Some(kernel))?).seed(flags.seed);
    Ok(Some(flags.max.map_or(select.clone(), |most| select.max(most))))
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
            "select chooses for ppca, mixture, kmeans and kpca; covary fit --model {} -q auto chooses by itself",
            flags.model.name
        )));
    }
    Ok(None)
}
