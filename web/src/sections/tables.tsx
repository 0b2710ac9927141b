// The tables of the core's description: components, factors, fit indices, groups, as `covary inspect` prints them.
import type { TableTold } from '../about';
import { inspect } from '../commands';
import type { Data } from '../data';
import { fixed, label } from '../format';
import { Command, Figure } from '../plots/figure';
import { Heat } from '../plots/heat';
import { Table } from '../plots/table';
import { numbers } from './columns';

export function Tables({ data }: { data: Data }) {
  const { about } = data;
  const command = inspect(about);
  const phi = about.facts.factors?.factor_correlation;
  return (
    <>
      {about.tables.map((table, k) => (
        <Told key={k} table={table} file={`table-${k + 1}`} />
      ))}
      {phi && about.linear?.turned && phi.length > 1 && (
        <Figure title="Correlations of the factors" file="factor-correlations" command={inspect(about, '--json')} caption="Oblique factors go together; orthogonal ones have correlations of 0."
          table={() => ({
            caption: 'Correlations of the factors',
            rows: phi.length,
            columns: [{ name: 'factor', left: true, show: (a) => data.names[a]! }, ...data.names.map((name, b) => numbers(name, (a) => phi[a]![b]!, (x) => fixed(x, 3)))],
          })}
        >
          <Heat label="Correlations of the factors" rows={data.names} columns={data.names} value={(a, b) => phi[a]![b]!} most={1} />
        </Figure>
      )}
      {command && <Command text={command} />}
    </>
  );
}

/** A cell as the command prints it, with a minus sign in place of a hyphen. */
const shown = (text: string): string => (text.trim() === '' ? '' : label(text, 400).replace(/^-(?=[\d.])/, '−'));

function Told({ table, file }: { table: TableTold; file: string }) {
  const wide = Math.max(table.header.length, ...table.rows.map((row) => row.length), 0);
  if (wide === 0) return table.note ? <p>{label(table.note, 500)}</p> : null;
  const bars = (at: number) => table.rows.length > 0 && table.rows.every((row) => /^[█▏▎▍▌▋▊▉]*$/.test(row[at] ?? ''));
  const names = Array.from({ length: wide }, (_, at) => table.header[at] ?? '').filter((name, at) => name !== '' || !bars(at));
  return (
    <>
      <Table
        caption={names.join(', ')}
        file={file}
        rows={table.rows.length}
        first={60}
        columns={names.map((name, at) => ({
          name: name.trim() === '' ? '' : label(name, 60),
          text: (row: number) => table.rows[row]![at] ?? '',
          left: at < table.right[0] || at >= table.right[1],
          show: (row: number) => <bdi class="name">{shown(table.rows[row]![at] ?? '')}</bdi>,
        }))}
      />
      {table.note && <p class="quiet">{label(table.note, 500)}</p>}
    </>
  );
}
