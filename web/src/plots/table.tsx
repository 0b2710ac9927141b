// Tables that sort, show as many rows as somebody wants, and can be saved.
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { count } from '../format';
import { saveCsv } from './export';

export interface Column {
  name: string;
  /** What is shown and, where it differs, what it is sorted and saved by. */
  show: (row: number) => ComponentChildren;
  sort?: (row: number) => number | string;
  /** What is saved, where it is not what is sorted by. */
  text?: (row: number) => number | string;
  left?: boolean;
  background?: (row: number) => string | undefined;
}

/** What a table holds; `file` is what it is saved as. */
export interface Content {
  caption: string;
  columns: Column[];
  rows: number;
  first?: number;
  file?: string;
  onPick?: (row: number) => void;
  picked?: number | null;
  start?: [number, boolean];
}

const PAGE = 20;

export function Table({ caption, columns, rows, first = PAGE, file, onPick, picked, start }: Content & { file: string }) {
  const [order, setOrder] = useState<[number, boolean] | null>(start ?? null);
  const [shown, setShown] = useState(first);
  const sorted = useMemo(() => {
    const all = Array.from({ length: rows }, (_, row) => row);
    const key = order ? columns[order[0]]?.sort : undefined;
    if (!order || !key) return all;
    const keys = all.map(key);
    const side = order[1] ? -1 : 1;
    return all.sort((a, b) => side * compare(keys[a]!, keys[b]!) || a - b);
  }, [columns, rows, order]);
  const cell = (column: Column, row: number) => (column.text ? column.text(row) : column.sort ? column.sort(row) : textOf(column.show(row)));
  return (
    <div class="table">
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column, at) => (
                <th key={at} scope="col" class={column.left ? 'left' : ''} aria-sort={order?.[0] === at ? (order[1] ? 'descending' : 'ascending') : 'none'}>
                  {column.sort ? (
                    <button type="button" onClick={() => setOrder(order?.[0] === at ? [at, !order[1]] : [at, !column.left])}>
                      <bdi>{column.name}</bdi>
                      <span aria-hidden="true">{order?.[0] === at ? (order[1] ? ' ↓' : ' ↑') : ''}</span>
                    </button>
                  ) : (
                    <bdi>{column.name}</bdi>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, shown).map((row) => (
              <tr key={row} class={picked === row ? 'picked' : ''}>
                {columns.map((column, at) => (
                  <td key={at} class={column.left ? 'left' : ''} style={column.background ? { background: column.background(row) } : undefined}>
                    {onPick && at === 0 ? (
                      <button type="button" class="link" onClick={() => onPick(row)}>
                        {column.show(row)}
                      </button>
                    ) : (
                      column.show(row)
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet tools">
        {rows > shown && (
          <button type="button" onClick={() => setShown(shown + 10 * PAGE)}>
            {count(rows - shown)} more
          </button>
        )}
        <button type="button" onClick={() => saveCsv(columns.map((c) => c.name), sorted.map((row) => columns.map((c) => cell(c, row))), file)}>
          Save as CSV
        </button>
      </p>
    </div>
  );
}

function textOf(shown: ComponentChildren): string {
  return typeof shown === 'string' || typeof shown === 'number' ? String(shown) : '';
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'string' || typeof b === 'string') return String(a).localeCompare(String(b));
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1;
  return Number.isNaN(b) ? -1 : a - b;
}
