// A browser for the tests: a Chromium on the PATH, otherwise the one that npm's @sparticuz/chromium carries.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function onPath() {
  for (const name of NAMES) {
    try {
      return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    } catch {
      // the next one
    }
  }
  return null;
}

/** Fonts where the system has no configuration of its own. */
function fonts() {
  if (process.env.FONTCONFIG_FILE) return process.env.FONTCONFIG_FILE;
  const folder = mkdtempSync(join(tmpdir(), 'covary-fonts-'));
  const file = join(folder, 'fonts.conf');
  const folders = ['/usr/share/fonts', '/usr/local/share/fonts', '/tmp/fonts'].map((dir) => `<dir>${dir}</dir>`).join('');
  writeFileSync(file, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${folders}<cachedir>${folder}</cachedir></fontconfig>`);
  return file;
}

/** The browser, or the reason why there is none. */
export async function launch() {
  const own = onPath();
  try {
    const executablePath = own ?? (await (await import('@sparticuz/chromium')).default.executablePath());
    const env = own ? process.env : { ...process.env, FONTCONFIG_FILE: fonts() };
    return { browser: await chromium.launch({ executablePath, args: ['--no-sandbox'], env }) };
  } catch (error) {
    return { reason: `no Chromium can be started here: ${String(error.message ?? error).split('\n')[0]}` };
  }
}
