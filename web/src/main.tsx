// The page: unpacks its data, and shows the sections that the model has something to say in.
import { render, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { defaultColour } from './colouring';
import { assemble, type Data } from './data';
import { decode } from './decode';
import { label, plural } from './format';
import { associations, CarriedColumns } from './sections/carried';
import { Explorer, decoderOf } from './sections/explorer';
import { Fit } from './sections/fit';
import { Groups } from './sections/groups';
import { Latent } from './sections/latent';
import { Loadings } from './sections/loadings';
import { Missing } from './sections/missing';
import { Rows } from './sections/rows';
import { Scree } from './sections/scree';
import { Tables } from './sections/tables';
import { Words } from './sections/words';
import { axes, colourBy, dark, place, printing, theme, watchTheme, type Theme } from './state';

interface Section {
  id: string;
  title: string | ((data: Data) => string);
  show: (data: Data) => ComponentChildren;
  has: (data: Data) => boolean;
}

const SECTIONS: Section[] = [
  { id: 'words', title: 'In words', has: () => true, show: (data) => <Words data={data} /> },
  { id: 'explorer', title: 'Latent explorer', has: (data) => decoderOf(data) !== null, show: (data) => <Explorer data={data} /> },
  { id: 'latent', title: 'Latent plot', has: (data) => data.n > 0 && data.coordinates.length > 0, show: (data) => <Latent data={data} /> },
  { id: 'groups', title: 'Groups', has: (data) => data.group !== null && data.n > 0, show: (data) => <Groups data={data} /> },
  { id: 'scree', title: ({ about }) => `How many ${about.components}`, has: (data) => data.about.eigenvalues.length > 0 || data.about.choice !== null, show: (data) => <Scree data={data} /> },
  { id: 'loadings', title: 'Loadings', has: (data) => data.model !== null && data.model.q > 0, show: (data) => <Loadings data={data} /> },
  { id: 'tables', title: 'Tables of the model', has: (data) => data.about.tables.length > 0, show: (data) => <Tables data={data} /> },
  { id: 'carried', title: 'Other columns', has: (data) => data.coordinates.length > 0 && data.n > 2 && associations(data).length > 0, show: (data) => <CarriedColumns data={data} /> },
  { id: 'rows', title: 'Rows', has: (data) => data.n > 0 && data.spe !== null, show: (data) => <Rows data={data} /> },
  { id: 'missing', title: 'Missing values', has: (data) => data.about.rows.incomplete > 0, show: (data) => <Missing data={data} /> },
  { id: 'fit', title: 'Fit', has: (data) => data.about.trace.length > 1 || (data.model !== null && data.n > 2), show: (data) => <Fit data={data} /> },
];

/** Drawn when it comes near the screen; otherwise soon, one after the other, so that a search and a printer find it. */
function Later({ after, children }: { after: number; children: () => ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setNear(true), { rootMargin: '600px' });
    if (ref.current) observer.observe(ref.current);
    const timer = setTimeout(() => setNear(true), 1500 + 300 * after);
    return () => {
      observer.disconnect();
      clearTimeout(timer);
    };
  }, []);
  return (
    <div ref={ref} class={near ? '' : 'later'}>
      {(near || printing.value) && children()}
    </div>
  );
}

function ThemeToggle() {
  const next: Record<Theme, Theme> = { auto: dark.value ? 'light' : 'dark', light: 'dark', dark: 'light' };
  return (
    <button type="button" class="theme" aria-label={dark.value ? 'Light colours' : 'Dark colours'} onClick={() => (theme.value = next[theme.value])}>
      {dark.value ? '☀' : '☾'}
    </button>
  );
}

function Page({ data }: { data: Data }) {
  const { about } = data;
  const sections = SECTIONS.filter((section) => section.has(data));
  const titleOf = (of: Section['title']) => (typeof of === 'string' ? of : of(data));
  const title = label(about.title ?? nameOf(about.data) ?? 'A model', 120);
  useEffect(() => {
    document.title = `${title}: covary report`;
  }, []);
  return (
    <>
      <a class="skip" href="#words">
        To the text
      </a>
      <nav aria-label="Sections">
        <p class="brand">covary</p>
        <ul>
          {sections.map(({ id, title: text }) => (
            <li key={id}>
              <a href={`#${id}`}>{titleOf(text)}</a>
            </li>
          ))}
        </ul>
        <ThemeToggle />
      </nav>
      <main>
        <header>
          <h1>
            <bdi>{title}</bdi>
          </h1>
          <p class="sub">
            {about.kind_title[0]!.toUpperCase() + about.kind_title.slice(1)} · {plural(about.rows.total, 'row')} · {plural(data.p, 'feature')}
          </p>
        </header>
        {sections.map(({ id, title: text, show }, at) => (
          <section key={id} id={id} aria-labelledby={`${id}-title`}>
            <h2 id={`${id}-title`}>{titleOf(text)}</h2>
            <Later after={at}>{() => show(data)}</Later>
          </section>
        ))}
        <footer>
          Made by {about.made_by}. The page holds its data and asks nothing of any network. Cells are kept in steps of 1/65534 of the range of each feature.
        </footer>
      </main>
    </>
  );
}

/** The name of a file without its folders and endings. */
function nameOf(path: string | null): string | null {
  const file = path?.split(/[\\/]/).pop();
  return file?.replace(/\.(csv|tsv|parquet|arrow|feather|npy)(\.gz|\.zst)?$/i, '') || null;
}

/** The explorer starts at the first row; at the middle where there is none. */
function firstPlace(data: Data): number[] {
  const q = data.model?.q ?? data.coordinates.length;
  const first = data.coordinates.slice(0, q).map((z) => z[0] ?? 0);
  return first.length === q && first.every(Number.isFinite) ? first : new Array<number>(q).fill(0);
}

async function start(): Promise<void> {
  const root = document.getElementById('page')!;
  const element = document.getElementById('data')!;
  try {
    const data = assemble(await decode(element.textContent ?? ''));
    element.remove();
    axes.value = [0, data.coordinates.length > 1 || (data.model && data.model.q > 1) ? 1 : 0];
    place.value = firstPlace(data);
    colourBy.value = defaultColour(data);
    watchTheme();
    root.textContent = '';
    render(<Page data={data} />, root);
    document.documentElement.dataset.ready = 'yes';
  } catch (error) {
    root.textContent = `The data of this page cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    document.documentElement.dataset.ready = 'failed';
  }
}

void start();
