// In words: what the core says of the model and its rows, and how it was found.
import type { Data } from '../data';
import { count, label } from '../format';
import { Command } from '../plots/figure';
import { inspect } from '../commands';

export function Words({ data }: { data: Data }) {
  const { about } = data;
  const command = inspect(about);
  return (
    <>
      <div class="words">
        {about.sentences.map((sentence, k) => (
          <p key={k}>
            <bdi>{label(sentence, 2000)}</bdi>
          </p>
        ))}
        <Shown data={data} />
      </div>
      <details>
        <summary>How it was found</summary>
        <dl>
          {about.lines.map(([name, text], k) => (
            <div key={k}>
              <dt>{name}</dt>
              <dd>
                <bdi>{label(text, 1000)}</bdi>
              </dd>
            </div>
          ))}
        </dl>
        {command && <Command text={command} />}
      </details>
    </>
  );
}

/** Which rows the page holds. */
function Shown({ data }: { data: Data }) {
  const { rows } = data.about;
  if (rows.shown === 0)
    return <p class="note">The page was written without rows: it has the model and counts, and pictures of rows are left out.</p>;
  if (!rows.sampled) return null;
  return (
    <p class="note">
      The pictures show {count(rows.shown)} of the {count(rows.total)} rows: the {count(rows.unusual)} most unusual ones and a sample of the others (seed{' '}
      {rows.seed}). Counts in these sentences are of all rows.
    </p>
  );
}
