// The commands that make the numbers of a picture, as somebody would type them; in Python, where the page was made there.
import type { About } from './about';

const PYTHON: Record<string, string> = {
  transform: 'model.transform(X)',
  score: 'model.outliers(X)',
  'score --limits 0.99': 'model.outliers(X), model.limits(0.99, X)',
  'score --contributions': 'model.contributions(X)',
  reconstruct: 'model.reconstruct(X)',
  'reconstruct --posterior': 'model.reconstruct(X, kind="posterior")',
  impute: 'model.impute(X)',
  assign: 'model.predict(X)',
  'assign --probabilities': 'model.predict_proba(X)',
};

/** A word of a command line; quoted where a shell would take it apart. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** covary NAME MODEL DATA flags; what is typed in Python where the page does not know what the files are called. */
export function command(about: About, name: string, flags = ''): string | null {
  if (!about.model || !about.data) return PYTHON[`${name} ${flags}`] ?? PYTHON[name] ?? null;
  const words = ['covary', name, quoted(about.model), quoted(about.data)];
  return [...words, flags].filter((word) => word !== '').join(' ');
}

/** A command about the model alone. */
export function inspect(about: About, flags = ''): string {
  if (!about.model) return 'model.summary()';
  return ['covary inspect', quoted(about.model), flags].filter((word) => word !== '').join(' ');
}

/** How many components: a command about the data alone, without the numbers that are not in the model. */
export function selectCommand({ data, carried }: About): string {
  if (!data) return 'covary.select(X)';
  const others = carried.filter(({ name, labels }) => labels === null && !name.includes(',')).map(({ name }) => name);
  return ['covary select', quoted(data), ...(others.length > 0 ? ['--drop', quoted(others.join(','))] : [])].join(' ');
}
