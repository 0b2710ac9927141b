// Components and the columns that are carried along: r for numbers, η² for labels.
import { useMemo } from 'preact/hooks';
import { componentWords } from '../about';
import { command } from '../commands';
import { otherColumns, type Data } from '../data';
import { fixed, label } from '../format';
import { correlation, correlationRatio } from '../maths/statistics';
import { Figure } from '../plots/figure';
import { Heat, SignedLegend } from '../plots/heat';
import { names, numbers } from './columns';

export interface Association {
  column: string;
  measure: 'r' | 'η²';
  values: number[];
}

/** Of each carried column that can go with anything. */
export function associations(data: Data): Association[] {
  const found: Association[] = [];
  otherColumns(data).forEach((column) => {
    if (column.numbers) found.push({ column: column.name, measure: 'r', values: data.coordinates.map((z) => correlation(z, column.numbers!)) });
    const few = column.codes && column.labels.length > 1 && column.labels.length < Math.max(2, data.n / 2);
    if (few) found.push({ column: column.name, measure: 'η²', values: data.coordinates.map((z) => correlationRatio(z, column.codes!)) });
  });
  return found.filter(({ values }) => values.some((v) => Number.isFinite(v)));
}

export function CarriedColumns({ data }: { data: Data }) {
  const found = useMemo(() => associations(data), [data]);
  const shown = data.names.slice(0, 30);
  const rows = found.map(({ column, measure }) => `${label(column, 20)} (${measure})`);
  return (
    <Figure
      title={`Do ${componentWords(data.about).many} go with them?`}
      file="carried-columns"
      command={command(data.about, data.about.answers.map ? 'assign' : 'transform')}
      caption={
        <>
          Columns that are not in the model: the correlation r of numbers, and for labels η², the share of a {componentWords(data.about).one}’s variance that lies between them.{' '}
          <SignedLegend most={1} />
        </>
      }
      table={() => ({
        caption: 'Components and other columns',
        rows: found.length,
        columns: [
          names('column', (i) => found[i]!.column),
          { name: 'measure', show: (i) => found[i]!.measure, sort: (i) => found[i]!.measure },
          ...data.names.map((name, k) => numbers(name, (i) => found[i]!.values[k]!, (x) => fixed(x, 3))),
        ],
      })}
    >
      <Heat label="Components and other columns" rows={rows} columns={shown} value={(i, k) => (Number.isFinite(found[i]!.values[k]!) ? found[i]!.values[k]! : 0)} most={1} />
    </Figure>
  );
}
