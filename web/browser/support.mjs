// What the tests of the page share: a folder, the command, and a page that may say nothing and ask for nothing.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
export const COMMAND = process.env.COVARY ?? join(here, '../../target/debug/covary');
/** The folder of data sets: `../shared/data` beside the repository, or what COVARY_DATA says. */
export const DATA = process.env.COVARY_DATA ?? join(here, '../../../shared/data');

export class Place {
  dir = mkdtempSync(join(tmpdir(), 'covary-page-'));

  path(name) {
    return join(this.dir, name);
  }

  write(name, content) {
    writeFileSync(this.path(name), content);
  }

  run(...words) {
    return execFileSync(COMMAND, words, { cwd: this.dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });
  }

  /** Fits a model and writes the page about it; gives the path of the page. */
  report(data, fit, flags = [], name = 'page.html') {
    this.run('fit', data, ...fit, '-o', 'm.covary', '--quiet');
    this.run('report', 'm.covary', data, ...flags, '-o', name, '--quiet');
    return this.path(name);
  }

  /** The first rows of a data set, as a table beside the pages; gives its name. */
  head(data, rows, name = 'head.csv') {
    const bytes = readFileSync(data);
    const text = (data.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
    this.write(name, `${text.split('\n').slice(0, rows + 1).join('\n')}\n`);
    return name;
  }

  remove() {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A data set, or null where it is not there. */
export function dataset(name) {
  const path = join(DATA, name);
  return existsSync(path) ? path : null;
}

/** Rows of numbers of a CSV text, with its header. */
export function csv(text) {
  const lines = text.trim().split('\n').map((line) => line.split(','));
  return { header: lines[0], rows: lines.slice(1).map((line) => line.map((cell) => (cell === '' ? NaN : Number(cell)))) };
}

/** A table with two hidden variables, three groups and, if wanted, missing cells. */
export function table(rows, features, missing = 0, seed = 1) {
  let state = seed;
  const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random());
  const weights = Array.from({ length: features }, () => [normal(), normal()]);
  const lines = [['name', 'kind', ...weights.map((_, j) => `f${j + 1}`)].join(',')];
  for (let i = 0; i < rows; i++) {
    const [a, b] = [normal() + 2 * (i % 3), normal()];
    const cells = weights.map(([u, v], j) => (random() < missing ? '' : (10 * j + 3 * u * a + 2 * v * b + 0.7 * normal()).toFixed(3)));
    lines.push([`n${i + 1}`, 'abc'[i % 3], ...cells].join(','));
  }
  return `${lines.join('\n')}\n`;
}

/** Opens a page from its file; `said` collects every message, failure and request to anywhere else. */
export async function open(browser, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const said = [];
  page.on('console', (message) => said.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => said.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => said.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on('request', (request) => /^(file|blob|data):/.test(request.url()) || said.push(`request: ${request.url()}`));
  await page.goto(`file://${path}`);
  await page.waitForSelector('html[data-ready]');
  return { page, said, close: () => context.close() };
}

/** Looks at each section and opens the table of each picture; gives the names of the sections and pictures. */
export async function walk(page) {
  return page.evaluate(async () => {
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    document.documentElement.style.scrollBehavior = 'auto';
    const sections = [];
    for (const section of document.querySelectorAll('main section')) {
      section.scrollIntoView();
      for (let k = 0; k < 40 && section.querySelector('.later'); k++) await pause(25);
      await pause(20);
      sections.push(section.id);
    }
    const figures = [];
    for (const figure of document.querySelectorAll('figure')) {
      figures.push(figure.dataset.figure);
      const button = [...figure.querySelectorAll('.head button')].find((one) => one.textContent === 'Table');
      if (button?.getAttribute('aria-expanded') === 'false') button.click();
    }
    await pause(60);
    return { sections, figures, tables: document.querySelectorAll('table').length, failed: document.documentElement.dataset.ready !== 'yes' };
  });
}

/** The commands under the pictures, as a list of words each. */
export async function commands(page) {
  const texts = await page.locator('.command code').allTextContents();
  return [...new Set(texts)].map((text) => text.split(' '));
}

/** The place in the explorer and the row that it shows. */
export async function explored(page) {
  return JSON.parse(await page.locator('[data-explorer]').getAttribute('data-explorer'));
}

/** The largest difference of two rows, relative to the largest of their numbers. */
export function apart(ours, theirs) {
  const size = Math.max(...theirs.map(Math.abs), 1e-300);
  return Math.max(...theirs.map((x, j) => Math.abs(ours[j] - x))) / size;
}

/** Rows of four hidden variables and noise, as the bytes of a NPY file. */
export function largeTable(rows, features) {
  const head = `{'descr': '<f8', 'fortran_order': False, 'shape': (${rows}, ${features}), }`;
  const padded = `${head.padEnd(117)}\n`; // 10 bytes before it make 128
  const numbers = new Float64Array(rows * features);
  let state = 12345;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 4294967296;
  const normal = () => random() + random() + random() + random() + random() + random() - 3;
  const weights = Array.from({ length: features }, () => Array.from({ length: 4 }, normal));
  for (let i = 0; i < rows; i++) {
    const z = [normal(), normal(), normal(), normal()];
    for (let j = 0; j < features; j++) numbers[i * features + j] = z.reduce((sum, x, k) => sum + 2 * x * weights[j][k], normal());
  }
  const magic = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length & 255, padded.length >> 8]);
  return Buffer.concat([magic, Buffer.from(padded, 'latin1'), Buffer.from(numbers.buffer)]);
}

/** Gives a feature of a page another name, by packing its block anew. */
export function rename(path, from, to) {
  const html = read(path);
  const bytes = gunzipSync(Buffer.from(/id="data">([^<]*)</.exec(html)[1], 'base64'));
  const length = bytes.readUInt32LE(0);
  const told = JSON.parse(bytes.toString('utf8', 4, 4 + length));
  told.about.features = told.about.features.map((name) => (name === from ? to : name));
  const json = Buffer.from(JSON.stringify(told));
  const head = Buffer.alloc(Math.ceil((4 + json.length) / 8) * 8);
  head.writeUInt32LE(json.length);
  json.copy(head, 4);
  const packed = gzipSync(Buffer.concat([head, bytes.subarray(Math.ceil((4 + length) / 8) * 8)]));
  writeFileSync(path, html.replace(/id="data">[^<]*</, () => `id="data">${packed.toString('base64')}<`));
}

export const read = (path) => readFileSync(path, 'utf8');
