/**
 * Takes pictures of HTML reports in Chromium: light, dark, on a phone and as paper. Fails when a page
 * writes an error to the console, asks for anything from the network, scrolls sideways or has no visible
 * verdict.
 *
 *   node scripts/screenshot-reports.mjs                              the pictures of docs/images
 *   node scripts/screenshot-reports.mjs --check                      whether they still show those pages
 *   node scripts/screenshot-reports.mjs <folder> <report.html> …     whole pages of given reports
 *
 * The first two run the audits themselves and need dist (`npm run build`). With the pictures goes a
 * fingerprint of each page they were taken of, which the check compares; it needs no browser, and exits
 * with 1 where a picture is out of date. Chromium is the one that CHROMIUM names, else
 * /usr/bin/chromium; where there is none, this says so and exits with 0.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Ways to look at a page. */
const views = {
  light: { viewport: { width: 1200, height: 900 }, colorScheme: 'light' },
  dark: { viewport: { width: 1200, height: 900 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'light', deviceScaleFactor: 2 },
  // As wide as where the site shows it, so that its letters are no smaller than the site's.
  card: { viewport: { width: 720, height: 508 }, colorScheme: 'light' },
  darkCard: { viewport: { width: 720, height: 508 }, colorScheme: 'dark' },
  paper: { viewport: { width: 794, height: 1123 }, colorScheme: 'dark', media: 'print' },
};

/** The reports of docs/images: which audit, and what of its page is shown how. */
const pictures = [
  {
    name: 'report',
    audit: [
      ...['fixtures/attention/02-large-384x384-d128-bf16.safetensors', '--output', ':fa4.out'],
      ...['--lse', ':fa4.lse', '--as', 'fa4', '--set', 'architecture=sm_90'],
      ...['--compare', ':torch_flash.out', '--compare', ':torch_cudnn.out'],
    ],
    shots: [
      { file: 'report-light.png', view: 'light', height: 1500 },
      { file: 'report-dark.png', view: 'dark', section: 'elements' },
      { file: 'report-comparison.png', view: 'light', section: 'comparison' },
    ],
  },
  {
    name: 'failure',
    audit: [
      'fixtures/attention/01-normal-384x384-d128-bf16-causal.safetensors',
      ...['--kernel', 'fa4', '--threads', '1', '--set', 'variant=causal-one-more'],
    ],
    shots: [
      { file: 'report-phone.png', view: 'phone', height: 844 },
      { file: 'failure-light.png', view: 'card', height: 508 },
      { file: 'failure-dark.png', view: 'darkCard', height: 508 },
    ],
  },
];

const images = join(root, 'docs/images');
const fingerprintFile = join(images, 'pages.json');

/** Writes the page of a picture; its path. The command in it is the same in every folder. */
function writeReport({ name, audit }, folder) {
  const fixtures = join(folder, 'fixtures');
  if (!existsSync(fixtures)) symlinkSync(join(root, 'fixtures'), fixtures, 'junction');
  const path = join(folder, `${name}.html`);
  const main = join(root, 'dist/src/cli/main.js');
  const words = [main, 'audit', ...audit, '--html', basename(path), '--quiet'];
  const { status, stderr } = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' });
  if (!existsSync(path) || (status !== 0 && status !== 1))
    throw new Error(`the audit of ${name} fails:\n${stderr}`);
  return path;
}

/** SHA-256 of a page but for what differs from run to run: when, how long, and by which release. */
function fingerprint(path) {
  const page = readFileSync(path, 'utf8')
    .replace(/flashproof \S+, \S+Z, [\d.]+ s\./g, '')
    .replace(/"version":"[^"]*"|"created":"[^"]*"|"seconds":[\d.e+-]+/g, '');
  return createHash('sha256').update(page).digest('hex');
}

/** Which pages are no longer those that the pictures show, a line each. */
function outdatedPictures(temporary) {
  const taken = JSON.parse(readFileSync(fingerprintFile, 'utf8'));
  return pictures
    .filter((picture) => fingerprint(writeReport(picture, temporary)) !== taken[picture.name])
    .map(({ name, shots }) => {
      const files = shots.map(({ file }) => file).join(', ');
      return `the page of ${name} has changed since ${files}: node scripts/screenshot-reports.mjs`;
    });
}

/** Opens a page in one view and looks for what must not be; the page, and what is wrong with it. */
async function openPage(browser, path, view) {
  const { media, ...settings } = views[view];
  const context = await browser.newContext(settings);
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith('file:')) faults.push(`asks for ${request.url()}`);
  });
  if (media !== undefined) await page.emulateMedia({ media });
  await page.goto(pathToFileURL(path).href);
  const { width, visible } = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    visible: document.querySelector('#verdict')?.getBoundingClientRect().height ?? 0,
  }));
  if (width > 0) faults.push(`is ${width} px wider than the screen`);
  if (!(visible > 0)) faults.push('shows no verdict');
  return { page, context, faults: faults.map((fault) => `${basename(path)}, ${view}: ${fault}`) };
}

async function takePage(browser, path, folder) {
  const faults = [];
  for (const view of Object.keys(views)) {
    const opened = await openPage(browser, path, view);
    faults.push(...opened.faults);
    const file = join(folder, `${basename(path, '.html')}-${view}.png`);
    await opened.page.screenshot({ path: file, fullPage: true });
    await opened.context.close();
  }
  return faults;
}

async function takePictures(browser, temporary) {
  const faults = [];
  const fingerprints = {};
  for (const picture of pictures) {
    const path = writeReport(picture, temporary);
    fingerprints[picture.name] = fingerprint(path);
    for (const { file, view, height, section } of picture.shots) {
      const { page, context, faults: found } = await openPage(browser, path, view);
      faults.push(...found);
      const target = join(images, file);
      if (section !== undefined) await page.locator(`#${section}`).screenshot({ path: target });
      else {
        await page.setViewportSize({ width: views[view].viewport.width, height });
        await page.screenshot({ path: target });
      }
      await context.close();
    }
  }
  writeFileSync(fingerprintFile, `${JSON.stringify(fingerprints, null, 2)}\n`);
  return faults;
}

function check() {
  const temporary = mkdtempSync(join(tmpdir(), 'flashproof-'));
  try {
    const outdated = outdatedPictures(temporary);
    for (const line of outdated) process.stderr.write(`${line}\n`);
    return outdated.length === 0 ? 0 : 1;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function run([folder, ...reports]) {
  if (folder === '--check') return check();
  const playwright = await import('playwright-core').catch(() => null);
  if (playwright === null || !existsSync(executablePath)) {
    const missing = playwright === null ? 'playwright-core' : executablePath;
    process.stdout.write(`no pictures: ${missing} is not installed\n`);
    return 0;
  }
  const temporary = mkdtempSync(join(tmpdir(), 'flashproof-'));
  const browser = await playwright.chromium.launch({
    executablePath,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
  try {
    const faults = [];
    if (folder === undefined) {
      mkdirSync(images, { recursive: true });
      faults.push(...(await takePictures(browser, temporary)));
    } else {
      mkdirSync(folder, { recursive: true });
      for (const report of reports)
        faults.push(...(await takePage(browser, resolve(report), folder)));
    }
    for (const fault of faults) process.stderr.write(`${fault}\n`);
    return faults.length === 0 ? 0 : 1;
  } finally {
    await browser.close();
    rmSync(temporary, { recursive: true, force: true });
  }
}

process.exitCode = await run(process.argv.slice(2));
