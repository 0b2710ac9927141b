// The page in a real browser: every section of reports of many kinds, opened from its file, with clicks.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { launch } from './chromium.mjs';
import { Place, apart, commands, csv, dataset, explored, largeTable, open, read, rename, table, walk } from './support.mjs';

const { browser, reason } = await launch();
const place = new Place();
after(async () => {
  await browser?.close();
  place.remove();
});

const SKIP = browser ? false : `skipped: ${reason}`;
const needs = (name) => SKIP || (dataset(name) ? false : `skipped: ${name} is not there; COVARY_DATA says where data sets are`);

/** Opens a page, runs checks, and insists on silence. */
async function visit(path, checks, options) {
  const { page, said, close } = await open(browser, path, options);
  try {
    await checks(page);
    assert.deepEqual(said, []);
  } finally {
    await close();
  }
}

const LINEAR = ['words', 'explorer', 'latent', 'scree', 'loadings', 'tables', 'rows', 'fit'];
const ORDER = ['words', 'explorer', 'latent', 'groups', 'scree', 'loadings', 'tables', 'carried', 'rows', 'missing', 'fit'];

/** These sections are there in their order, and no others. */
function sectionsAre(found, expected) {
  assert.deepEqual(found, ORDER.filter((id) => expected.includes(id)));
}

/** The explorer starts at the first row: it shows what the command makes of that row. */
async function firstRowIsDecoded(page, data, flags) {
  const rebuilt = csv(place.run('reconstruct', 'm.covary', place.head(data, 1), ...flags, '--quiet'));
  const { row } = await explored(page);
  assert.ok(row.length > 3);
  assert.ok(apart(row, rebuilt.rows[0].slice(-row.length)) < 1e-5, `${apart(row, rebuilt.rows[0].slice(-row.length))}`);
}

describe('tables made here', { skip: SKIP }, () => {
  before(() => {
    place.write('small.csv', table(90, 6));
    place.write('holes.csv', table(90, 6, 0.12));
  });

  test('the whole page, with clicks', async () => {
    const path = place.report('small.csv', ['-q', '2'], ['--id', 'name']);
    await visit(path, async (page) => {
      const { sections, figures, tables } = await walk(page);
      for (const id of [...LINEAR, 'carried']) assert.ok(sections.includes(id), id);
      assert.ok(figures.includes('latent-plot') && figures.includes('distances') && tables > 8, figures.join());
      await rowIsExplained(page);
      await brushingSelects(page);
      await filesAreMade(page);
      await themeTurns(page);
    });
  });

  test('the explorer shows the row that the model decodes', async () => {
    for (const kind of ['ppca', 'fa', 'pca', 'bpca', 'robust']) {
      const path = place.report('small.csv', ['--model', kind, '-q', '2'], ['--id', 'name']);
      const flags = kind === 'pca' ? [] : ['--posterior'];
      const rebuilt = csv(place.run('reconstruct', 'm.covary', 'small.csv', ...flags, '--quiet'));
      await visit(path, async (page) => {
        await page.locator('#rows').scrollIntoViewIfNeeded();
        await page.locator('.row .link').first().click();
        const name = await page.locator('.row h3').first().innerText();
        const row = rebuilt.rows[Number(/n(\d+)/.exec(name)[1]) - 1].slice(-6);
        await page.getByRole('button', { name: 'Show it in the explorer' }).click();
        const { row: shown } = await explored(page);
        assert.ok(apart(shown, row) < 1e-5, `${kind}: ${apart(shown, row)}`);
      });
    }
  });

  // Of models that are not linear the page has a grid of places. Of a page about one row, that row and the middle are
  // corners of the grid; a row without any cell lies in the middle.
  for (const [name, flags, holes] of [
    ['kpca', ['-q', '2', '--standardise'], false],
    ['gplvm', ['-q', '2', '--inducing', '8', '--tol', '0.01'], true],
    ['autoencoder', ['-q', '2', '--hidden', '4', '--tol', '0.01'], true],
    ['autoencoder without encoder', ['-q', '2', '--hidden', '4', '--tol', '0.01', '--no-encoder'], true],
  ])
    test(`the explorer shows rows that the command decodes: ${name}`, async () => {
      place.run('fit', 'small.csv', '--model', name.split(' ')[0], ...flags, '-o', 'm.covary', '--quiet');
      const data = holes ? 'holes.csv' : 'small.csv';
      const [header, ...lines] = read(place.path(data)).trim().split('\n');
      const { rows: coordinates } = csv(place.run('transform', 'm.covary', data, '--quiet'));
      const missing = (i) => lines[i].split(',').includes('');
      const among = (sign, gaps) => coordinates.findIndex((z, i) => sign * z.at(-2) * z.at(-1) > 0.1 && missing(i) === gaps);
      // On both diagonals of the plane: a complete row, and one with missing values.
      for (const i of [among(1, false), among(-1, holes)]) {
        assert.ok(i >= 0);
        place.write('corners.csv', `${[header, lines[i], ...(holes ? ['nothing,d,,,,,,'] : [])].join('\n')}\n`);
        place.run('report', 'm.covary', 'corners.csv', '--id', 'name', '-o', 'page.html', '--quiet');
        const places = csv(place.run('transform', 'm.covary', 'corners.csv', '--quiet')).rows.map((row) => row.slice(-2));
        const rebuilt = csv(place.run('reconstruct', 'm.covary', 'corners.csv', '--quiet')).rows.map((row) => row.slice(-6));
        await visit(place.path('page.html'), async (page) => {
          for (const [k, row] of rebuilt.entries()) {
            await page.locator('#rows').scrollIntoViewIfNeeded();
            await page.locator('#rows .block .table .link', { hasText: k === 0 ? `n${i + 1}` : 'nothing' }).click();
            await page.getByRole('button', { name: 'Show it in the explorer' }).click();
            const shown = await explored(page);
            places[k].forEach((z, axis) => assert.ok(Math.abs(shown.place[axis] - z) < 1e-6, `${shown.place} and ${places[k]}`));
            assert.ok(apart(shown.row, row) < 1e-5, `row ${i + 1}: ${apart(shown.row, row)}`);
          }
        });
      }
    });

  test('moving the place moves the row, by mouse and by keys', async () => {
    const path = place.report('small.csv', ['-q', '3'], []);
    await visit(path, async (page) => {
      const plane = page.locator('#explorer canvas.points');
      await plane.scrollIntoViewIfNeeded();
      const before = await explored(page);
      const box = await plane.boundingBox();
      await page.mouse.move(box.x + 60, box.y + 60);
      await page.mouse.down();
      await page.mouse.move(box.x + 200, box.y + 120, { steps: 4 });
      await page.mouse.up();
      const dragged = await explored(page);
      assert.notDeepEqual(dragged.place.slice(0, 2), before.place.slice(0, 2));
      assert.notDeepEqual(dragged.row, before.row);
      await plane.focus();
      await page.keyboard.press('ArrowRight');
      const right = await explored(page);
      assert.ok(right.place[0] > dragged.place[0] && right.place[1] === dragged.place[1]);
      await page.locator('.sliders input').first().fill(String(Number(await page.locator('.sliders input').first().getAttribute('max'))));
      assert.ok((await explored(page)).place[2] > right.place[2]);
    });
  });

  test('missing values have their section', async () => {
    const path = place.report('holes.csv', ['-q', '2'], []);
    await visit(path, async (page) => {
      const { sections, figures } = await walk(page);
      assert.ok(sections.includes('missing') && figures.includes('missing-patterns') && figures.includes('missing-together'));
      assert.ok((await page.locator('path.ellipse').count()) > 5);
    });
  });

  // What each kind can do: loadings are of linear models, variances of those that have components, a trace of fits in steps.
  const CURVED = ['words', 'explorer', 'latent', 'tables', 'rows'];
  const GROUPS = ['words', 'latent', 'groups', 'tables', 'rows', 'fit'];
  for (const [name, flags, expected] of [
    ['fa', ['-q', '2', '--rotate', 'oblimin'], LINEAR],
    ['bpca', ['-q', '4'], LINEAR],
    ['robust', ['-q', '2'], LINEAR],
    ['ica', ['-q', '2'], LINEAR],
    ['kpca', ['-q', '3', '--standardise'], [...CURVED, 'scree']],
    ['gplvm', ['-q', '3', '--inducing', '8', '--tol', '0.01'], [...CURVED, 'fit']],
    ['autoencoder', ['-q', '2', '--hidden', '4', '--tol', '0.01'], [...CURVED, 'scree', 'fit']],
    ['autoencoder without encoder', ['-q', '2', '--hidden', '4', '--tol', '0.01', '--no-encoder'], [...CURVED, 'scree', 'fit']],
    ['mixture', ['-k', '3', '-q', '1'], GROUPS],
    ['kmeans', ['-k', '3'], GROUPS],
  ])
    test(`a page of ${name}`, async () => {
      const path = place.report('small.csv', ['--model', name.split(' ')[0], ...flags], ['--id', 'name']);
      await visit(path, async (page) => {
        const { sections, failed } = await walk(page);
        assert.ok(!failed);
        sectionsAre(sections, [...expected, 'carried']);
        const sentences = await page.locator('.words p').count();
        assert.ok(sentences >= 4 && sentences <= 11, `${sentences} sentences`);
        const typed = await commands(page);
        assert.ok(typed.length >= 3);
        for (const [program, ...words] of typed) {
          assert.equal(program, 'covary');
          place.run(...words); // throws where the command does
        }
      });
    });

  test('one component: points along a line, kept apart', async () => {
    for (const fit of [['-q', '1'], ['--model', 'kpca', '-q', '1', '--standardise']])
      await visit(place.report('small.csv', fit, []), async (page) => {
        await walk(page);
        assert.match(await page.locator('#latent h3').first().innerText(), /along one component/);
        const plane = page.locator('#explorer canvas.points');
        await plane.scrollIntoViewIfNeeded();
        const before = await explored(page);
        const box = await plane.boundingBox();
        await page.mouse.click(box.x + 12, box.y + 20);
        const after = await explored(page);
        assert.deepEqual([after.place.length, before.place.length], [1, 1]);
        assert.ok(after.place[0] < before.place[0], `${after.place} and ${before.place}`);
      });
  });

  for (const [name, flags] of [
    ['gplvm', ['-q', '3', '--inducing', '8', '--tol', '0.01']],
    ['autoencoder', ['-q', '2', '--hidden', '4', '--tol', '0.01']],
  ])
    test(`missing values in a page of ${name}, and what cannot be shown is not there`, async () => {
      await visit(place.report('holes.csv', ['--model', name, ...flags], ['--id', 'name']), async (page) => {
        const { sections, figures } = await walk(page);
        assert.ok(sections.includes('missing') && !sections.includes('loadings'), sections.join());
        assert.ok(figures.includes('missing-patterns') && figures.includes('missing-together'));
        assert.equal(figures.filter((figure) => /contributions|quantiles|residual/.test(figure)).length, 0, figures.join());
        assert.deepEqual(await page.locator('#latent .check').allInnerTexts(), ['labels']);
        assert.equal(await page.locator('path.ellipse, path.contour, .sliders, .row .sentences').count(), 0);
        assert.match(await page.locator('#rows figcaption').first().innerText(), /Click a row to look at it/);
        const says = await page.locator('#explorer figcaption').innerText();
        assert.match(says, /Places are those of a grid/);
        assert.equal(/the other coordinates are 0/.test(says), name === 'gplvm');
        // The row with the most cells missing says so.
        const gaps = csv(read(place.path('holes.csv'))).rows.map((row) => row.slice(2).filter(Number.isNaN).length);
        const most = gaps.indexOf(Math.max(...gaps));
        await page.locator('#latent .table .tools button').first().click();
        await page.locator('#latent .table .link').filter({ hasText: new RegExp(`^n${most + 1}$`) }).click();
        assert.match(await page.locator('.row p').first().innerText(), new RegExp(`${gaps[most]} cells are missing`));
      });
    });

  test('on a narrow screen nothing sticks out', async () => {
    const path = place.report('holes.csv', ['-q', '2'], ['--id', 'name']);
    await visit(path, async (page) => {
      await walk(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
    }, { viewport: { width: 390, height: 844 } });
  });

  test('on paper everything is there, in light colours, without waiting for a frame', async () => {
    const path = place.report('holes.csv', ['-q', '2'], []);
    await visit(path, async (page) => {
      const { theme, drawn, empty } = await page.evaluate(() => {
        dispatchEvent(new Event('beforeprint'));
        const blank = (canvas) => !canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0);
        return {
          theme: document.documentElement.dataset.theme,
          drawn: [...document.querySelectorAll('main section')].filter((section) => section.querySelector('figure, table, p')).length,
          empty: [...document.querySelectorAll('canvas')].filter(blank).map((canvas) => canvas.getAttribute('aria-label')),
        };
      });
      assert.equal(theme, 'light');
      assert.equal(drawn, await page.locator('main section').count());
      assert.deepEqual(empty, []);
    }, { colorScheme: 'dark' });
  });

  test('a page without rows, and of a sample', async () => {
    await visit(place.report('small.csv', ['-q', '2'], ['--no-rows']), async (page) => {
      const { sections } = await walk(page);
      assert.ok(sections.includes('explorer') && !sections.includes('rows'));
      assert.match(await page.locator('.note').innerText(), /without rows/);
    });
    await visit(place.report('small.csv', ['-q', '2'], ['--rows', '30']), async (page) => {
      assert.match(await page.locator('.note').innerText(), /30 of the 90 rows/);
    });
  });
});

/** Click a row: sentences, contributions and neighbours are there. */
async function rowIsExplained(page) {
  await page.locator('#rows').scrollIntoViewIfNeeded();
  await page.locator('#rows .block .table .link').nth(1).click();
  assert.match(await page.locator('.row .sentences').innerText(), /the rest of the row says|No cell surprises/);
  assert.ok((await page.locator('.row .link').count()) >= 5);
  assert.equal(await page.locator('#latent circle.focus').count(), 1);
}

/** Select with the mouse: rows are counted, and saved as CSV. */
async function brushingSelects(page) {
  const canvas = page.locator('#latent canvas.points');
  await canvas.scrollIntoViewIfNeeded();
  await page.locator('#latent').getByRole('button', { name: 'Select' }).click();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 2, box.y + 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height - 2, { steps: 5 });
  await page.mouse.up();
  const words = await page.locator('.selected').innerText();
  const rows = Number(/(\d+) rows/.exec(words)[1]);
  assert.ok(rows > 5 && rows < 90, words);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save them as CSV' }).click()]);
  const { header, rows: lines } = csv(read(await download.path()));
  assert.deepEqual(header.slice(0, 4), ['row', 'name', 'kind', 'f1']);
  assert.equal(lines.length, rows);
}

/** PNG and SVG of a picture come out, and are not empty. */
async function filesAreMade(page) {
  for (const [name, first] of [['SVG', '<svg'], ['PNG', '\u0089PNG']]) {
    const button = page.locator('[data-figure="latent-plot"]').getByRole('button', { name });
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    const path = await download.path();
    assert.ok(statSync(path).size > 5000, name);
    assert.ok(name === 'PNG' || read(path).startsWith(first));
  }
}

async function themeTurns(page) {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole('button', { name: 'Dark colours' }).click();
  // The page turns with the next frame.
  await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, light, { timeout: 5000 });
}

describe('data sets', () => {
  before(() => place.write('links.csv', 'from,to\nLFHD,RFHD\nC7,T10\nLFWT,LKNE\nLKNE,LANK\nRFWT,RKNE\nRKNE,RANK\n'));

  test('digits are images', { skip: needs('digits.csv') }, async () => {
    const data = dataset('digits.csv');
    const path = place.report(data, ['--drop', 'target', '-q', '10'], ['--id', 'target', '--image', '8x8']);
    await visit(path, async (page) => {
      const { sections, figures } = await walk(page);
      sectionsAre(sections, [...LINEAR, 'carried']);
      assert.ok(figures.includes('component-images'));
      await firstRowIsDecoded(page, data, ['--posterior']);
      await page.locator('#explorer').scrollIntoViewIfNeeded();
      await page.getByLabel('pictures across the plane').check();
      assert.equal(await page.locator('#explorer .images canvas').count(), 1);
    });
  });

  test('airquality misses values', { skip: needs('airquality.csv') }, async () => {
    const path = place.report(dataset('airquality.csv'), ['--drop', 'Month,Day', '--standardise', '-q', '2'], []);
    await visit(path, async (page) => {
      const { sections } = await walk(page);
      sectionsAre(sections, [...LINEAR, 'carried', 'missing']);
      await firstRowIsDecoded(page, dataset('airquality.csv'), ['--posterior']);
      assert.match(await page.locator('.words').innerText(), /7\.2 % of the cells are missing, in 42 rows/);
    });
  });

  test('bfi has factors', { skip: needs('bfi_train.csv') }, async () => {
    const fit = ['--model', 'fa', '-q', '5', '--rotate', 'oblimin', '--drop', 'row_id,gender,education,age'];
    await visit(place.report(dataset('bfi_train.csv'), fit, ['--id', 'row_id']), async (page) => {
      const { sections, figures } = await walk(page);
      sectionsAre(sections, [...LINEAR, 'carried', 'missing']);
      await firstRowIsDecoded(page, dataset('bfi_train.csv'), ['--posterior']);
      assert.ok(figures.includes('factor-correlations') && figures.includes('loadings'));
      assert.match(await page.locator('#tables').innerText(), /RMSEA/);
    });
  });

  test('wine is coloured by its class', { skip: needs('wine.csv') }, async () => {
    const path = place.report(dataset('wine.csv'), ['--drop', 'target', '--standardise', '-q', '3'], []);
    await visit(path, async (page) => {
      const { sections } = await walk(page);
      sectionsAre(sections, [...LINEAR, 'carried']);
      await firstRowIsDecoded(page, dataset('wine.csv'), ['--posterior']);
      assert.equal(await page.locator('#latent .legend .swatch').count(), 3);
      await page.locator('#latent .swatch').first().click();
      assert.match(await page.locator('.selected').innerText(), /59 rows selected/);
      await page.locator('#latent select').nth(2).selectOption({ label: 'alcohol' });
      assert.equal(await page.locator('#latent .ramp').count(), 1);
    });
  });

  test('a run is a figure of markers', { skip: needs('mocap_run1.csv') }, async () => {
    const fit = ['--drop', 'Field,Time', '-q', '4'];
    await visit(place.report(dataset('mocap_run1.csv'), fit, ['--stick', 'links.csv']), async (page) => {
      const { sections } = await walk(page);
      sectionsAre(sections, [...LINEAR, 'carried', 'missing']);
      await firstRowIsDecoded(page, dataset('mocap_run1.csv'), ['--posterior']);
      assert.equal(await page.locator('.stick .link').count(), 6);
      const before = (await explored(page)).place;
      await page.getByRole('button', { name: 'Play the rows' }).click();
      await page.waitForTimeout(400);
      await page.getByRole('button', { name: 'Stop' }).click();
      assert.notDeepEqual((await explored(page)).place, before);
    });
  });

  test('faces are images of 28 by 20', { skip: needs('frey_faces.csv.gz') }, async () => {
    await visit(place.report(dataset('frey_faces.csv.gz'), ['-q', '6'], ['--image', '28x20']), async (page) => {
      const { sections } = await walk(page);
      sectionsAre(sections, LINEAR);
      assert.equal((await explored(page)).row.length, 560);
      await firstRowIsDecoded(page, dataset('frey_faces.csv.gz'), ['--posterior']);
    }, { colorScheme: 'dark', viewport: { width: 420, height: 900 } });
  });

  test('digits as images by a network', { skip: needs('digits.csv') }, async () => {
    const fit = ['--model', 'autoencoder', '--drop', 'target', '-q', '2', '--hidden', '6', '--tol', '0.1'];
    await visit(place.report(dataset('digits.csv'), fit, ['--id', 'target', '--image', '8x8']), async (page) => {
      const { sections, figures } = await walk(page);
      sectionsAre(sections, ['words', 'explorer', 'latent', 'scree', 'tables', 'carried', 'rows', 'fit']);
      assert.ok(!figures.includes('component-images'));
      await page.getByLabel('pictures across the plane').check();
      assert.equal(await page.locator('#explorer .images canvas').count(), 1);
    });
  });

  test('a run as a figure of markers by a GP-LVM', { skip: needs('mocap_run1.csv') }, async () => {
    const fit = ['--model', 'gplvm', '--drop', 'Field,Time', '-q', '2', '--inducing', '12', '--tol', '0.5'];
    const data = place.head(dataset('mocap_run1.csv'), 60, 'run.csv');
    await visit(place.report(data, fit, ['--stick', 'links.csv']), async (page) => {
      const { sections } = await walk(page);
      sectionsAre(sections, ['words', 'explorer', 'latent', 'tables', 'carried', 'rows', 'missing', 'fit']);
      assert.equal(await page.locator('.stick .link').count(), 6);
      const before = await explored(page);
      await page.getByRole('button', { name: 'Play the rows' }).click();
      // Rows near each other can have the same place of the grid.
      await page.waitForFunction(({ place }) => JSON.parse(document.querySelector('[data-explorer]').dataset.explorer).place.join() !== place.join(), before, { timeout: 5000 });
      await page.getByRole('button', { name: 'Stop' }).click();
      assert.notDeepEqual((await explored(page)).row, before.row);
    });
  });

  test('faces as images by a GP-LVM', { skip: needs('frey_faces.csv.gz') }, async () => {
    const data = place.head(dataset('frey_faces.csv.gz'), 60, 'faces.csv');
    await visit(place.report(data, ['--model', 'gplvm', '-q', '2', '--inducing', '8', '--tol', '0.5'], ['--image', '28x20']), async (page) => {
      const { sections } = await walk(page);
      sectionsAre(sections, ['words', 'explorer', 'latent', 'tables', 'rows', 'fit']);
      await page.getByLabel('pictures across the plane').check();
      assert.equal((await explored(page)).row.length, 560);
    }, { colorScheme: 'dark', viewport: { width: 390, height: 844 } });
  });
});

describe('large tables', { skip: SKIP }, () => {
  test('100 000 × 20: at most 8 MB, and it can be dragged', async (context) => {
    place.write('large.npy', largeTable(100000, 20));
    const path = place.report('large.npy', ['-q', '4'], []);
    const { size } = statSync(path);
    assert.ok(size <= 8e6, `${size} bytes`);
    const start = Date.now();
    await visit(path, async (page) => {
      const canvas = page.locator('#latent canvas.points');
      await page.locator('#latent').scrollIntoViewIfNeeded();
      await canvas.waitFor();
      const ready = Date.now() - start;
      const box = await canvas.boundingBox();
      await page.mouse.move(box.x + 300, box.y + 200);
      await page.mouse.down();
      const frames = page.evaluate(() => new Promise((done) => {
        const from = performance.now();
        let n = 0;
        const tick = (now) => (n++, now - from > 1000 ? done((1000 * n) / (now - from)) : requestAnimationFrame(tick));
        requestAnimationFrame(tick);
      }));
      for (let k = 0; k < 40; k++) await page.mouse.move(box.x + 300 + 60 * Math.sin(k / 3), box.y + 200 + k);
      const rate = await frames;
      await page.mouse.up();
      assert.equal(await page.getByRole('button', { name: 'Show all' }).count(), 1, 'the plot has moved');
      context.diagnostic(`${size} bytes, ready after ${ready} ms, ${rate.toFixed(0)} frames a second while it is dragged`);
    });
  });
});

describe('hostile tables', { skip: SKIP }, () => {
  const NAMES = ['<script>alert(1)</script>', '"><img src=x onerror=alert(2)>', 'x'.repeat(10000), 'שלום עולם', 'control\u0001here', '😀🎉', '</script><b>', '@@covary-data@@', "';--", '&lt;'];
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

  test('names like HTML, scripts, of any length and script, are shown as they are', async () => {
    const lines = [['id', ...NAMES].map(quoted).join(',')];
    for (let i = 0; i < 40; i++) lines.push([quoted(NAMES[i % NAMES.length]), ...NAMES.map((_, j) => (Math.sin(i * (j + 1.3)) * 3 + (i % 7)).toFixed(3))].join(','));
    place.write('names.csv', `${lines.join('\n')}\n`);
    const path = place.report('names.csv', ['-q', '2', '--id', 'id'], ['--id', 'id', '--title', '<script>alert(3)</script>']);
    await visit(path, async (page) => {
      await walk(page);
      assert.equal(await page.locator('h1').innerText(), '<script>alert(3)</script>');
      assert.ok((await page.locator('#loadings').innerText()).includes('<script>alert(1)</script>'));
      assert.equal(await page.locator('main img, main script').count(), 0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 1, `the page is ${wide} pixels too wide`);
    });
  });

  test('a name with NUL, which text files cannot have, is shown with a symbol', async () => {
    place.write('few.csv', table(30, 4));
    const path = place.report('few.csv', ['-q', '1'], []);
    rename(path, 'f1', 'nul\u0000here');
    await visit(path, async (page) => {
      await walk(page);
      assert.match(await page.locator('#loadings').innerText(), /nul␀here/);
    });
  });

  test('5000 features', async () => {
    const features = Array.from({ length: 5000 }, (_, j) => `g${j}`);
    const lines = [features.join(',')];
    for (let i = 0; i < 30; i++) lines.push(features.map((_, j) => (Math.sin(i * 1.7 + j) + Math.cos(i * j)).toFixed(2)).join(','));
    place.write('wide.csv', `${lines.join('\n')}\n`);
    await visit(place.report('wide.csv', ['-q', '3'], []), async (page) => assert.ok(!(await walk(page)).failed));
  });

  test('one row, and nothing observed', async () => {
    place.write('few.csv', table(30, 4));
    place.run('fit', 'few.csv', '-q', '1', '-o', 'm.covary', '--quiet');
    place.write('one.csv', 'name,kind,f1,f2,f3,f4\nonly,a,1,2,3,4\n');
    place.write('nothing.csv', 'name,kind,f1,f2,f3,f4\na,b,,,,\nc,d,,,,\n');
    for (const data of ['one.csv', 'nothing.csv']) {
      place.run('report', 'm.covary', data, '--id', 'name', '-o', 'page.html', '--quiet');
      await visit(place.path('page.html'), async (page) => assert.ok(!(await walk(page)).failed, data));
    }
  });
});
