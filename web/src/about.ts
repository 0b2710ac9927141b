// What the page is told in words and small numbers: the mirror of crates/report/src/about.rs.

export interface TableTold {
  header: string[];
  rows: string[][];
  right: [number, number];
  note: string | null;
}

export interface CarriedTold {
  name: string;
  labels: string[] | null;
  array: string;
}

export interface ChoiceLine {
  components: number;
  explained: number;
  noise_variance: number;
  log_likelihood: number | null;
  aic: number | null;
  bic: number | null;
  log_evidence: number | null;
  cross_validated: number | null;
  cross_validated_error: number | null;
  correlation_eigenvalue: number | null;
  noise_eigenvalue: number | null;
}

export interface Choice {
  table: ChoiceLine[];
  choices: { method: string; components: number; reason: string }[];
  recommended: number;
  reason: string;
}

export interface Pairs {
  loadings_lower?: number[][];
  loadings_upper?: number[][];
  level?: number;
}

export interface FactorFacts {
  communalities: number[];
  uniquenesses: number[];
  complexities: number[];
  standardised_loadings: number[][];
  structure: number[][];
  factor_correlation: number[][];
  factor_variances: number[];
  proportions: number[];
  cumulative: number[];
  standard_errors: { standardised?: { loadings?: number[][] } } | null;
}

export interface Facts {
  rows?: number;
  total_variance?: number;
  standard_errors?: { loadings?: number[][] } | null;
  intervals?: Pairs | null;
  factors?: FactorFacts | null;
  mixture?: { weights?: number[]; separation?: (number | null)[] } | null;
  clusters?: { centres?: number[][] } | null;
  [key: string]: unknown;
}

export interface About {
  made_by: string;
  title: string | null;
  kind: string;
  kind_title: string;
  components: string;
  features: string[];
  coordinates: string[];
  model: string | null;
  data: string | null;
  rows: {
    total: number;
    shown: number;
    sampled: boolean;
    unusual: number;
    seed: number;
    incomplete: number;
    empty: number;
    level: number;
    outside: number | null;
  };
  missing: number[];
  sentences: string[];
  lines: [string, string][];
  tables: TableTold[];
  facts: Facts;
  eigenvalues: number[];
  explained: number[];
  trace: number[];
  choice: Choice | null;
  image: { height: number; width: number } | null;
  stick: { markers: [string, [number, number, number]][]; links: [number, number][] } | null;
  carried: CarriedTold[];
  id: number | null;
  linear: {
    posterior: boolean;
    proper: boolean;
    degrees_of_freedom: number | null;
    deviations: boolean;
    turned: boolean;
  } | null;
  answers: {
    coordinates: boolean;
    map: boolean;
    distances: boolean;
    p_values: boolean;
    novelty: boolean;
    groups: number | null;
    probabilities: boolean;
    limits: { level: number; complete: boolean; each: boolean } | null;
    grid: { side: number; from: [number, number]; to: [number, number] } | null;
  };
}

/** What the coordinates of a model are called: components, factors, sources; of a plane for drawing, directions. */
export function componentWords({ components, answers }: About): { one: string; many: string } {
  const many = answers.map ? 'directions' : components;
  return { one: many.replace(/s$/, ''), many };
}
