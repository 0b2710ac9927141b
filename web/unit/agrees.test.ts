// The page and the command say the same: coordinates, T², SPE, p-values and decoded rows of every kind of model.
import { afterAll, describe, expect, test } from 'vitest';
import { selectCommand } from '../src/commands';
import { assemble, type Data } from '../src/data';
import { contributions } from '../src/maths/contributions';
import { beyondLimits } from '../src/sections/rows';
import { Place, present, table } from './covary';

const FITS: [string, string[]][] = [
  ['ppca', ['-q', '2']],
  ['ppca scaled', ['-q', '2', '--standardise']],
  ['pca', ['--model', 'pca', '-q', '2']],
  ['pca scaled', ['--model', 'pca', '-q', '3', '--standardise']],
  ['fa', ['--model', 'fa', '-q', '2']],
  ['fa turned', ['--model', 'fa', '-q', '2', '--rotate', 'oblimin']],
  ['bpca', ['--model', 'bpca', '-q', '3']],
  ['robust', ['--model', 'robust', '-q', '2', '--nu', '5']],
  ['ica', ['--model', 'ica', '-q', '2']],
];

/** Kinds that the core answers for when the page is written, and whether rows may miss cells. */
const CURVED: [string, string[], boolean][] = [
  ['kpca', ['--model', 'kpca', '-q', '2', '--standardise'], false],
  ['gplvm', ['--model', 'gplvm', '-q', '2', '--inducing', '8', '--tol', '0.01'], true],
  ['gplvm scaled', ['--model', 'gplvm', '-q', '3', '--inducing', '8', '--tol', '0.01', '--standardise'], true],
  ['autoencoder', ['--model', 'autoencoder', '-q', '2', '--hidden', '4', '--tol', '0.01'], true],
  ['autoencoder without encoder', ['--model', 'autoencoder', '-q', '2', '--hidden', '4', '--tol', '0.01', '--no-encoder'], true],
];

/** Tables that a model is fitted to, and asked about. */
const WHOLE: [string, string][] = [['whole.csv', 'whole.csv']];
const ALL: [string, string][] = [...WHOLE, ['whole.csv', 'holes.csv'], ['holes.csv', 'holes.csv']];

/** Largest difference from the command, relative to its largest number. */
function apart(ours: ArrayLike<number>, theirs: number[]): number {
  const size = Math.max(...theirs.map(Math.abs), 1e-300);
  return Math.max(...theirs.map((x, i) => Math.abs(ours[i]! - x))) / size;
}

/** Squared distances of the rows of a table from what the command makes of them, over the cells that are there. */
function squaredDistances(cells: Map<string, number[]>, rebuilt: Map<string, number[]>, features: string[]): number[] {
  const square = (name: string, i: number) => (cells.get(name)![i]! - rebuilt.get(name)![i]!) ** 2;
  return cells.get(features[0]!)!.map((_, i) => features.reduce((sum, name) => sum + (Number.isNaN(square(name, i)) ? 0 : square(name, i)), 0));
}

/** Limits of complete rows in double precision, those of rows with missing values in single. */
function limitsAgree(page: Data, scores: Map<string, number[]>): void {
  for (let i = 0; i < page.n; i++) {
    const whole = page.cells.missingIn(i) === 0;
    const [t2, spe] = [scores.get('t2_limit')![i]!, scores.get('spe_limit')![i]!];
    if (whole) expect([page.limits!.complete!.t2 / t2 - 1, page.limits!.complete!.spe / spe - 1].every((d) => Math.abs(d) < 1e-14)).toBe(true);
    expect(Math.abs(page.limits!.t2(i) - t2), `limit of T² of row ${i + 1}`).toBeLessThanOrEqual(1e-7 * t2);
    expect(Math.abs(page.limits!.spe(i) - spe), `limit of SPE of row ${i + 1}`).toBeLessThanOrEqual(1e-7 * spe);
  }
}

/** Lines of `covary score --contributions`, row by row and cell by cell. */
function contributionsAgree(page: Data, lines: Map<string, number[]>): void {
  let at = 0;
  for (let i = 0; i < page.n; i++)
    for (const cell of contributions(page.model!, page.cells.row(i))) {
      if (Number.isNaN(cell.value)) continue;
      for (const name of ['value', 'expected', 'deviation', 't2', 'spe', 'cell'] as const) {
        const theirs = lines.get(name)![at]!;
        const size = Math.max(Math.abs(theirs), name === 'value' || name === 'expected' ? cell.deviation : 1e-2);
        expect(Math.abs(cell[name] - theirs) / size, `${name} of cell ${cell.feature + 1} of row ${i + 1}: ${cell[name]} and ${theirs}`).toBeLessThan(1e-6);
      }
      at++;
    }
  expect(at).toBe(lines.get('value')!.length);
}

describe.skipIf(!present)('the page agrees with the command', () => {
  const place = new Place();
  place.write('whole.csv', table(60, 6, 0));
  place.write('holes.csv', table(60, 6, 0.15));
  afterAll(() => place.remove());

  for (const [name, flags] of FITS)
    for (const data of ['whole.csv', 'holes.csv']) {
      if (name === 'ica' && data === 'holes.csv') continue;
      test(`${name}, ${data}`, async () => {
        place.run('fit', data, ...flags, '-o', 'm.covary', '--quiet');
        place.run('report', 'm.covary', data, '--id', 'name', '-o', 'page.html', '--quiet');
        const page = assemble(await place.block('page.html'));
        const coordinates = Place.columns(place.run('transform', 'm.covary', data, '--quiet'));
        const scores = Place.columns(place.run('score', 'm.covary', data, '--limits', '0.99', '--quiet'));
        const near = (ours: ArrayLike<number>, theirs: number[], what: string) => {
          const size = Math.max(...theirs.filter(Number.isFinite).map(Math.abs), 1e-300);
          theirs.forEach((x, i) => expect(Math.abs(ours[i]! - x) / size, `${what} of row ${i + 1}: ${ours[i]} and ${x}`).toBeLessThan(1e-8));
        };
        page.coordinates.forEach((z, k) => near(z, coordinates.get(page.names[k]!)!, page.names[k]!));
        near(page.t2!, scores.get('t2')!, 'T²');
        near(page.spe!, scores.get('spe')!, 'SPE');
        near(page.pValue!, scores.get('p_value')!, 'p-value');
        near(Array.from({ length: page.n }, (_, i) => page.model!.logDensity(page.cells.row(i))!), scores.get('log_density')!, 'log density');
        limitsAgree(page, scores);
        contributionsAgree(page, Place.columns(place.run('score', 'm.covary', data, '--contributions', '--quiet')));
        const expected = Place.columns(place.run('impute', 'm.covary', data, '--quiet'));
        expect(page.cells.value(3, 1)).toBe(Number.isNaN(page.cells.value(3, 1)) ? NaN : expected.get('f2')![3]);
      });
    }

  for (const [name, flags, holes] of CURVED)
    for (const [fitted, data] of holes ? ALL : WHOLE)
      test(`${name} of ${fitted}, ${data}`, async () => {
        place.run('fit', fitted, ...flags, '-o', 'm.covary', '--quiet');
        place.run('report', 'm.covary', data, '--id', 'name', '-o', 'page.html', '--quiet');
        const page = assemble(await place.block('page.html'));
        const coordinates = Place.columns(place.run('transform', 'm.covary', data, '--quiet'));
        expect(page.coordinates.length).toBe(Number(flags[flags.indexOf('-q') + 1]));
        // The page has them in single precision.
        page.coordinates.forEach((z, k) => expect(apart(z, coordinates.get(page.names[k]!)!), page.names[k]!).toBeLessThan(1e-6));
        const novelty = page.about.answers.novelty;
        const distances = novelty
          ? Place.columns(place.run('score', 'm.covary', data, '--quiet')).get('spe')!
          : squaredDistances(Place.columns(place.text(data)), Place.columns(place.run('reconstruct', 'm.covary', data, '--quiet')), page.features);
        expect(apart(page.spe!, distances)).toBeLessThan(1e-6);
        expect([page.model, page.t2, page.pValue, page.limits, page.group]).toEqual([null, null, null, null, null]);
      });

  test('the command under a picture chooses among the features of the model', async () => {
    place.run('fit', 'whole.csv', '-q', '2', '--columns', '3-7', '-o', 'm.covary', '--quiet');
    place.run('report', 'm.covary', 'whole.csv', '--id', 'name', '-o', 'page.html', '--quiet');
    const { about } = assemble(await place.block('page.html'));
    const words = selectCommand(about).split(' ');
    expect(words).toEqual(['covary', 'select', 'whole.csv', '--drop', 'f6']);
    const { table: lines } = JSON.parse(place.run(...words.slice(1), '--json')) as { table: { bic: number }[] };
    expect(about.choice!.table.map(({ bic }) => bic)).toEqual(lines.map(({ bic }) => bic));
  });

  test('limits of a mixture are those of the group of each row', async () => {
    place.run('fit', 'whole.csv', '--model', 'mixture', '-k', '2', '-q', '1', '-o', 'm.covary', '--quiet');
    place.run('report', 'm.covary', 'whole.csv', '-o', 'page.html', '--quiet');
    const page = assemble(await place.block('page.html'));
    const scores = Place.columns(place.run('score', 'm.covary', 'whole.csv', '--limits', '0.99', '--quiet'));
    expect(page.limits!.complete).toBeNull();
    scores.get('t2_limit')!.forEach((limit, i) => expect(Math.abs(page.limits!.t2(i) / limit - 1)).toBeLessThan(1e-7));
    const outside = scores.get('t2')!.filter((t2, i) => t2 > scores.get('t2_limit')![i]! || scores.get('spe')![i]! > scores.get('spe_limit')![i]!);
    expect(beyondLimits(page, page.limits!)).toBe(outside.length);
  });

  test('carried columns, labels and missing cells come along', async () => {
    place.run('fit', 'holes.csv', '-q', '2', '-o', 'm.covary', '--quiet');
    place.run('report', 'm.covary', 'holes.csv', '--id', 'name', '-o', 'page.html', '--quiet');
    const page = assemble(await place.block('page.html'));
    expect(page.carried.map(({ name, labels }) => [name, labels.length])).toEqual([['name', 60], ['kind', 3]]);
    expect([page.rowName(4), page.carried[1]!.text(4)]).toEqual(['n5', 'b']);
    expect(page.about.sentences.length).toBeGreaterThanOrEqual(5);
    expect(page.about.sentences.length).toBeLessThanOrEqual(10);
  });

  test('a sample says so, and no rows are no rows', async () => {
    place.run('fit', 'whole.csv', '-q', '2', '-o', 'm.covary', '--quiet');
    place.run('report', 'm.covary', 'whole.csv', '--rows', '20', '--seed', '3', '-o', 'page.html', '--quiet');
    const some = assemble(await place.block('page.html'));
    expect([some.n, some.about.rows.total, some.about.rows.sampled]).toEqual([20, 60, true]);
    place.run('report', 'm.covary', 'whole.csv', '--no-rows', '-o', 'page.html', '--quiet');
    const none = assemble(await place.block('page.html'));
    expect([none.n, none.about.rows.total, none.model!.q]).toEqual([0, 60, 2]);
  });
});
