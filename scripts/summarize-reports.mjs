/**
 * Writes what reports of flashproof say to the page of a GitHub Actions run: a table to the file that
 * GITHUB_STEP_SUMMARY names, and an annotation for each file that fails or could not be judged.
 *
 *   node scripts/summarize-reports.mjs <folder>     of audit.json and check.json
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

/** A report of a folder; null where there is none. */
function reportOf(folder, name) {
  const path = join(folder, name);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null;
}

/** One line of a table: what was judged, its verdict, and the sentence of it. */
function linesOf(report, name) {
  if (report.kind === 'audits')
    return report.files.flatMap(({ path, report: one, error }) =>
      one === null
        ? [{ name: path, word: 'NOT JUDGED', sentence: error, isFine: false }]
        : linesOf(one, path),
    );
  const { pass, sentence } = report.verdict;
  const word = /^[A-Z][A-Z ]*(?=[:.])/.exec(sentence)?.[0] ?? (pass ? 'PASS' : 'FAIL');
  return [
    { name, word, sentence: sentence.slice(word.length).replace(/^[:.]\s*/, ''), isFine: pass },
  ];
}

/** A text in a cell of a table in Markdown: nothing in it acts. */
function cell(text) {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/[\\`*_[\]|~#@]/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

/** A text in a workflow command, whose lines end it. */
function escaped(text, isProperty) {
  const data = text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  return isProperty ? data.replaceAll(':', '%3A').replaceAll(',', '%2C') : data;
}

const [folder] = process.argv.slice(2);
const [audit, check] = [reportOf(folder, 'audit.json'), reportOf(folder, 'check.json')];
const lines = [
  ...(audit === null ? [] : linesOf(audit, audit.inputs?.problem.path ?? 'audit')),
  ...(check === null ? [] : linesOf(check, 'properties')),
];
// The check annotates its violations itself.
for (const { name, word, sentence, isFine } of lines)
  if (!isFine && name !== 'properties')
    process.stdout.write(
      `::error title=${escaped(`flashproof: ${name}`, true)}::${escaped(`${word}: ${sentence}`, false)}\n`,
    );
const rows = lines.map(
  ({ name, word, sentence, isFine }) =>
    `| ${isFine ? '✅' : '❌'} ${cell(word)} | ${cell(name)} | ${cell(sentence)} |`,
);
const table =
  rows.length === 0
    ? ['flashproof wrote no report: its log says why.']
    : ['| | what | why |', '| --- | --- | --- |', ...rows];
const summary = `## flashproof\n\n${table.join('\n')}\n`;
if (process.env.GITHUB_STEP_SUMMARY) appendFileSync(process.env.GITHUB_STEP_SUMMARY, summary);
else process.stdout.write(summary);
