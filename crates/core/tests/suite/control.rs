//! What a caller sees and can do while a fit runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::*;
use covary::algorithm::Stop;
use covary::data::{Chunk, RowSource, RowStream};
use covary::error::{Cell, Result};
use covary::estimator::{FactorSolver, standard_errors_with, turned_with};
use covary::evidence::{Moments, gather, gather_stream};
use covary::linalg::Mat;
use covary::rotate::{Method, Rotate};
use covary::select::Select;
use covary::{BayesianPca, Control, Error, ErrorClass, Event, FactorAnalysis, Ppca, Solver};

const ALL: [Solver; 5] = [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Auto];

/// A slow spectrum, so that Krylov needs several passes.
fn slow(n: usize, p: usize) -> Mat<f64> {
    rows_with_deviations(n, &falling(p, 0.995), 0.0, &mut Rng(1))
}

#[test]
fn cancelled_before_it_begins() {
    let x = slow(50, 30);
    let flag = AtomicBool::new(true);
    for solver in ALL {
        let control = Control::new().cancel(&flag);
        let error = Ppca::new(2).solver(solver).fit_with(&x, &control).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{}: {error}", solver.name());
        assert_eq!(error.class(), ErrorClass::Interrupted);
    }
}

#[test]
fn cancelled_during_the_only_pass() {
    let x = normal_matrix(40_000, 3, &mut Rng(2));
    for solver in [Solver::Eigen, Solver::Krylov] {
        let flag = AtomicBool::new(false);
        let seen = AtomicUsize::new(0);
        let observer = |event: Event| {
            if let Event::Rows { done, .. } = event {
                seen.fetch_max(done, Ordering::Relaxed);
                if done > 5000 {
                    flag.store(true, Ordering::Relaxed);
                }
            }
        };
        let control = Control::new().observer(&observer).cancel(&flag);
        let error = Ppca::new(1).solver(solver).threads(2).fit_with(&x, &control).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert!(seen.load(Ordering::Relaxed) < 40_000, "it stopped soon");
    }
}

#[test]
fn krylov_interrupted_after_a_pass_is_usable() {
    let x = slow(300, 120);
    let whole = Ppca::new(4).solver(Solver::Krylov).fit(&x).unwrap();
    assert!(whole.report.passes > 3, "the test needs several passes");
    for stop_after in [1, 2] {
        let flag = AtomicBool::new(false);
        let observer = |event: Event| {
            if matches!(event, Event::Iteration { number, .. } if number == stop_after) {
                flag.store(true, Ordering::Relaxed);
            }
        };
        let control = Control::new().observer(&observer).cancel(&flag);
        let fit = Ppca::new(4).solver(Solver::Krylov).fit_with(&x, &control).unwrap();
        assert_eq!(fit.report.stop, Stop::Interrupted);
        assert!(!fit.report.converged());
        assert_eq!((fit.report.passes, fit.report.trace.len()), (stop_after, stop_after));
        // A usable model: orthonormal directions, captured variance below the optimum, the exact trace.
        let (s, best) = (&fit.spectrum().unwrap(), &whole.spectrum().unwrap());
        relative(s.total_variance(), best.total_variance(), 1e-13, "trace");
        let captured = |s: &covary::spectrum::Spectrum| s.eigenvalues().iter().sum::<f64>();
        assert!(captured(s) < captured(best) && captured(s) > 0.3 * captured(best));
        relative(s.noise_variance() * 116.0 + captured(s), s.total_variance(), 1e-12, "nothing is lost");
        let gram = s.vectors().transpose() * s.vectors();
        close_matrix(&gram, &Mat::identity(4, 4), 1e-12, "directions");
        assert!(fit.model.log_density(&x).unwrap().iter().all(|d| d.is_finite()));
    }
}

#[test]
fn an_iteration_limit_is_a_value() {
    let x = slow(300, 120);
    for limit in [1, 2] {
        let fit = Ppca::new(4).solver(Solver::Krylov).max_iterations(limit).fit(&x).unwrap();
        assert_eq!((fit.report.stop, fit.report.passes), (Stop::IterationLimit, limit));
        assert!(!fit.report.converged());
    }
}

#[test]
fn progress_adds_up() {
    let (n, p) = (9000, 60);
    let x = slow(n, p);
    for solver in [Solver::Eigen, Solver::Krylov] {
        for threads in [1, 4] {
            let events = Mutex::new(Vec::new());
            let observer = |event: Event| events.lock().unwrap().push(event);
            let control = Control::new().observer(&observer);
            let fit = Ppca::new(3).solver(solver).threads(threads).fit_with(&x, &control).unwrap();
            let events = events.into_inner().unwrap();
            let mut passes: Vec<Vec<usize>> = vec![Vec::new()];
            let mut iterations = Vec::new();
            for event in events {
                match event {
                    Event::Rows { done, total } => {
                        assert_eq!(total, Some(n));
                        passes.last_mut().unwrap().push(done);
                    }
                    Event::Iteration { number, objective, change, .. } => {
                        assert!(objective.is_finite() && change >= 0.0);
                        iterations.push((number, objective));
                        passes.push(Vec::new());
                    }
                    _ => {}
                }
            }
            if solver == Solver::Krylov {
                assert!(passes.pop().unwrap().is_empty(), "nothing after the last iteration");
                let numbers: Vec<usize> = iterations.iter().map(|(n, _)| *n).collect();
                assert_eq!(numbers, (1..=fit.report.passes).collect::<Vec<_>>());
                let objectives: Vec<f64> = iterations.iter().map(|(_, o)| *o).collect();
                assert_eq!(bits(&objectives), bits(&fit.report.trace));
                let rising = objectives.windows(2).all(|w| w[1] >= w[0] * (1.0 - 1e-9));
                assert!(rising, "captured variance grows: {objectives:?}");
                // It ends at the sum of the wanted eigenvalues.
                let truth: f64 = DensePpca::of(&x, None, 3).eigenvalues[..3].iter().sum();
                relative(*objectives.last().unwrap(), truth, 1e-10, "objective");
            }
            assert_eq!(passes.len(), fit.report.passes);
            for done in passes {
                // Every report is a step forward and the last one is all rows, in whatever order they arrive.
                let mut sorted = done.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), done.len(), "no number twice");
                assert_eq!(sorted.last(), Some(&n));
            }
        }
    }
}

/// Of several bad cells the first one is reported, whichever thread meets which.
#[test]
fn the_lowest_bad_row_is_reported() {
    let (n, p) = (40_000, 2);
    let mut rng = Rng(3);
    for _ in 0..10 {
        let mut x = normal_matrix(n, p, &mut rng);
        let mut bad: Vec<usize> = (0..5).map(|_| rng.below(n)).collect();
        bad.iter().for_each(|i| x[(*i, 1)] = f64::INFINITY);
        bad.sort_unstable();
        for threads in [1, 2, 7] {
            for solver in [Solver::Eigen, Solver::Krylov] {
                let error = Ppca::new(1).solver(solver).threads(threads).fit(&x).map(|_| ()).unwrap_err();
                let Error::Infinite { cell, .. } = error else { panic!("{error}") };
                assert_eq!(cell, Cell { row: bad[0], column: 1, name: None }, "{threads} threads");
            }
        }
    }
}

/// A source whose chunks fail from some point on, each with a different error.
struct Failing {
    x: Mat<f64>,
    from: usize,
}

impl RowSource for Failing {
    fn n_features(&self) -> usize {
        self.x.ncols()
    }
    fn n_chunks(&self) -> usize {
        self.x.nrows()
    }
    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        if index >= self.from {
            return Err(Error::source(ErrorClass::File, format!("chunk {index} is broken")));
        }
        Ok(chunk_of(self.x.subrows(index, 1), index))
    }
}

#[test]
fn a_failing_source_tells_its_first_failure() {
    for from in [0, 1, 57, 299] {
        let source = Failing { x: normal_matrix(300, 2, &mut Rng(4)), from };
        for solver in [Solver::Eigen, Solver::Krylov] {
            for threads in [1, 3] {
                let fit = Ppca::new(1).solver(solver).threads(threads).fit(&source as &dyn RowSource);
                let error = fit.map(|_| ()).unwrap_err();
                assert_eq!(error.class(), ErrorClass::File);
                assert_eq!(error.to_string(), format!("chunk {from} is broken"));
            }
        }
        assert!(matches!(
            Ppca::new(1).solver(Solver::Svd).fit(&source as &dyn RowSource),
            Err(Error::Solver { solver: "svd", .. })
        ));
    }
    // The same source, whole: 300 chunks of a row each, rows unknown in advance.
    let source = Failing { x: normal_matrix(300, 2, &mut Rng(4)), from: 300 };
    let fit = Ppca::new(1).fit(&source as &dyn RowSource).unwrap();
    relative(
        fit.spectrum().unwrap().noise_variance(),
        DensePpca::of(&source.x, None, 1).noise,
        1e-12,
        "chunks of one row",
    );
    let error = Ppca::new(3).fit(&source as &dyn RowSource).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Components { possible: 2, .. }), "{error}");
}

/// Endless rows: only a request to stop ends them.
struct Endless(AtomicUsize);

impl RowStream for Endless {
    fn n_features(&self) -> usize {
        1
    }
    fn next_chunk(&mut self) -> Result<Option<Chunk<'static>>> {
        let at = self.0.fetch_add(1, Ordering::Relaxed);
        Chunk::from_rows(at, vec![at as f64], 1, covary::data::Order::Rows).map(Some)
    }
}

#[test]
fn a_stream_can_be_stopped() {
    let flag = AtomicBool::new(false);
    let observer = |event: Event| {
        if matches!(event, Event::Rows { done, total: None } if done > 1000) {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&observer).cancel(&flag);
    let mut stream = Endless(AtomicUsize::new(0));
    let error = gather_stream(&mut stream, || Moments::empty(1), &control).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Interrupted));
    assert!(stream.0.load(Ordering::Relaxed) < 1100, "it stopped soon");
}

#[test]
fn one_control_can_watch_two_passes() {
    let x = normal_matrix(5000, 2, &mut Rng(5));
    let last = AtomicUsize::new(0);
    let observer = |event: Event| {
        if let Event::Rows { done, .. } = event {
            last.fetch_max(done, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&observer);
    for _ in 0..2 {
        gather(&table(&x) as &dyn RowSource, || Moments::empty(2), &control).unwrap();
        assert_eq!(last.load(Ordering::Relaxed), 5000, "each pass counts from 0");
    }
}

/// Three factors and noise.
fn with_factors(n: usize, p: usize) -> Mat<f64> {
    let mut rng = Rng(7);
    let (z, noise) = (normal_matrix(n, 3, &mut rng), normal_matrix(n, p, &mut rng));
    let w = Mat::from_fn(3, p, |k, j| if j % 3 == k { 1.0 } else { 0.3 * ((k + 2 * j) as f64).sin() });
    z * w + noise * 0.8
}

fn moments_of(x: &Mat<f64>) -> Moments {
    gather(&table(x) as &dyn RowSource, || Moments::empty(x.ncols()), &Control::new()).unwrap()
}

/// Sets the flag after some time, from a thread of its own.
fn set_later(flag: &AtomicBool, then: impl FnOnce()) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            flag.store(true, Ordering::Relaxed);
        });
        then();
    });
}

#[test]
fn a_rotation_can_be_stopped() {
    let a = normal_matrix(60, 8, &mut Rng(6));
    for method in [Method::Varimax, Method::geomin(), Method::promax()] {
        let flag = AtomicBool::new(false);
        let control = Control::new().cancel(&flag);
        // Minutes of work, if nobody stopped it.
        let rotate = Rotate::new(method).starts(1_000_000);
        set_later(&flag, || {
            assert!(matches!(rotate.run_with(a.as_ref(), &control), Err(Error::Interrupted)));
        });
        assert!(matches!(rotate.run_with(a.as_ref(), &control), Err(Error::Interrupted)));
    }
}

/// Standard errors, parallel analysis and fits of moments look at the flag too.
#[test]
fn work_on_matrices_can_be_stopped() {
    let moments = moments_of(&with_factors(300, 40));
    let fit = FactorAnalysis::new(2).rotation(Rotate::new(Method::Varimax)).fit_moments(&moments).unwrap();
    let flag = AtomicBool::new(false);
    let control = Control::new().cancel(&flag);
    let select = Select::new().samples(10_000_000);
    set_later(&flag, || {
        assert!(matches!(select.run_moments_with(&moments, &control), Err(Error::Interrupted)));
    });
    let interrupted = |error: Error| assert!(matches!(error, Error::Interrupted), "{error}");
    interrupted(select.run_moments_with(&moments, &control).map(|_| ()).unwrap_err());
    interrupted(standard_errors_with(&fit.model, &fit.report, &control).map(|_| ()).unwrap_err());
    interrupted(turned_with(fit.model, &Rotate::new(Method::Varimax), &control).map(|_| ()).unwrap_err());
    interrupted(Ppca::new(2).fit_moments_with(&moments, &control).map(|_| ()).unwrap_err());
    interrupted(BayesianPca::new(2).fit_moments_with(&moments, &control).map(|_| ()).unwrap_err());
    for solver in [FactorSolver::Newton, FactorSolver::Krylov, FactorSolver::Em] {
        let fit = FactorAnalysis::new(2).solver(solver).fit_moments_with(&moments, &control);
        interrupted(fit.map(|_| ()).unwrap_err());
    }
}

/// What factor analysis has found after some iterations is usable, by each of its methods.
#[test]
fn factors_interrupted_after_an_iteration_are_usable() {
    let x = with_factors(300, 40);
    for solver in [FactorSolver::Newton, FactorSolver::Krylov, FactorSolver::Em] {
        for stop_after in [1, 2] {
            let flag = AtomicBool::new(false);
            let observer = |event: Event| {
                if matches!(event, Event::Iteration { number, .. } if number == stop_after) {
                    flag.store(true, Ordering::Relaxed);
                }
            };
            let control = Control::new().observer(&observer).cancel(&flag);
            let fit = FactorAnalysis::new(3).solver(solver).fit_with(&x, &control).unwrap();
            assert_eq!((fit.report.stop, fit.report.trace.len()), (Stop::Interrupted, stop_after));
            assert!(fit.model.gaussian().log_density(&x).unwrap().iter().all(|d| d.is_finite()));
        }
    }
}

/// Stopped between the search and its rotation: the factors as they were found.
#[test]
fn factors_interrupted_before_their_rotation_are_usable() {
    let x = with_factors(300, 12);
    let plain = FactorAnalysis::new(3).fit(&x).unwrap();
    let flag = AtomicBool::new(false);
    let observer = |event: Event| {
        if matches!(event, Event::Iteration { number, .. } if number == plain.report.trace.len()) {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&observer).cancel(&flag);
    let rotated = FactorAnalysis::new(3).rotation(Rotate::new(Method::geomin()));
    let fit = rotated.fit_with(&x, &control).unwrap();
    assert_eq!((fit.report.stop, fit.report.rotation), (Stop::Interrupted, None));
    assert_eq!(fit.model.pattern(), plain.model.pattern());
}

/// Limits count iterations, whichever method makes them, and those that make no sense are refused.
#[test]
fn limits_count_iterations() {
    let x = with_factors(300, 40);
    let moments = moments_of(&x);
    for solver in [FactorSolver::Newton, FactorSolver::Krylov, FactorSolver::Em] {
        let request = FactorAnalysis::new(3).solver(solver).starts(1).max_iterations(2);
        for fit in [request.fit(&x).unwrap(), request.fit_moments(&moments).unwrap()] {
            assert_eq!((fit.report.stop, fit.report.trace.len()), (Stop::IterationLimit, 2), "{solver:?}");
        }
    }
    for refused in [FactorAnalysis::new(1).max_iterations(0), FactorAnalysis::new(1).tolerance(f64::NAN)] {
        assert!(matches!(refused.fit(&x), Err(Error::Parameter { .. })));
    }
    let none = Rotate::new(Method::Varimax).max_iterations(0);
    assert!(matches!(none.run(x.as_ref()), Err(Error::Parameter { .. })));
}

/// A question about one chunk asks in between whether it is still wanted.
#[test]
fn questions_end_within_a_chunk() {
    use covary::data::Watched;
    use covary::model::{Density, Fill};
    /// One chunk, after which somebody asks to stop.
    struct Last<'a>(&'a Mat<f64>, &'a AtomicBool);
    impl RowSource for Last<'_> {
        fn n_features(&self) -> usize {
            self.0.ncols()
        }
        fn n_chunks(&self) -> usize {
            1
        }
        fn chunk(&self, _: usize) -> Result<Chunk<'_>> {
            self.1.store(true, Ordering::Relaxed);
            Ok(chunk_of(self.0.as_ref(), 0))
        }
    }
    let mut rng = Rng(4);
    let model = random_model(5, 2, false, &mut rng);
    let x = Mat::from_fn(50, 5, |i, j| if (i + j) % 4 == 0 { f64::NAN } else { rng.normal() });
    let flag = AtomicBool::new(false);
    let control = Control::new().cancel(&flag);
    let interrupted = |error: Option<Error>| {
        assert!(matches!(error, Some(Error::Interrupted)), "{error:?}");
        flag.store(false, Ordering::Relaxed);
    };
    let rows = Last(&x, &flag);
    let rows: &dyn RowSource = &Watched::new(&rows, &control);
    interrupted(model.posterior(rows).err());
    interrupted(model.impute_with_std(rows).err());
    interrupted(model.draw_missing(rows, 0..3, 1).err());
    flag.store(true, Ordering::Relaxed);
    interrupted(Fill::conditional(&model, &row(&x, 0), &control).err());
    flag.store(true, Ordering::Relaxed);
    interrupted(Density::precision(&model, &control).err());
}

/// Of complete rows the folds are decomposed one by one.
#[test]
fn a_choice_ends_between_folds() {
    let x = normal_matrix(400, 6, &mut Rng(6));
    let flag = AtomicBool::new(false);
    let observer = |event: Event| {
        if let Event::Rows { done: 400, .. } = event {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&observer).cancel(&flag);
    assert!(matches!(Select::new().run_with(&x, &control), Err(Error::Interrupted)));
}
