// Columns that the tables of many sections have: names, features, rows and numbers.
import type { Data } from '../data';
import { label, number } from '../format';
import type { Column } from '../plots/table';

/** Numbers, sorted and saved as they are. */
export const numbers = (name: string, value: (at: number) => number, show: (x: number) => string = number): Column => ({
  name,
  show: (at) => show(value(at)),
  sort: value,
});

/** Names that come with the data. */
export const names = (name: string, text: (at: number) => string): Column => ({
  name,
  left: true,
  show: (at) => <bdi class="name">{label(text(at))}</bdi>,
  sort: text,
});

/** Features, one to a line of the table. */
export const features = (data: Data): Column => names('feature', (j) => data.features[j]!);

/** Rows, one to a line of the table unless `of` says which; sorted and saved by their numbers. */
export const rowNames = (data: Data, of: (at: number) => number = (at) => at): Column => ({
  name: 'row',
  left: true,
  show: (at) => <bdi class="name">{data.rowName(of(at))}</bdi>,
  sort: (at) => data.numbers[of(at)]! + 1,
});
