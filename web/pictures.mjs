// The picture of the latent explorer in README.md, light and dark: as the page itself saves it, of the digits of the demo.
//
//   node web/pictures.mjs FOLDER   (make pictures)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { launch } from './browser/chromium.mjs';
import { COMMAND, open } from './browser/support.mjs';

const folder = resolve(process.argv[2] ?? 'docs/pictures');
const { browser, reason } = await launch();
if (!browser) throw new Error(reason);
const scratch = mkdtempSync(join(tmpdir(), 'covary-pictures-'));
try {
  execFileSync(COMMAND, ['demo', scratch], { stdio: 'ignore' });
  for (const colorScheme of ['light', 'dark']) {
    const { page, close } = await open(browser, join(scratch, 'report.html'), { colorScheme, viewport: { width: 1180, height: 900 } });
    const plane = page.locator('#explorer canvas.points');
    await page.getByLabel('pictures across the plane').check();
    await page.getByRole('button', { name: 'To the middle' }).click();
    await plane.scrollIntoViewIfNeeded();
    const box = await plane.boundingBox();
    await page.mouse.click(box.x + 0.07 * box.width, box.y + 0.93 * box.height);
    const button = page.locator('[data-figure="latent-explorer"]').getByRole('button', { name: 'SVG' });
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    writeFileSync(join(folder, `explorer-${colorScheme}.svg`), readFileSync(await download.path()));
    await close();
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`the latent explorer in ${folder}`);
