import { describe, expect, it } from 'vitest';
import {
  createAuditsReport,
  fileFigures,
  fileReason,
  fileStatus,
  mainOutput,
  numbersOf,
  type AuditedFile,
  type JudgedReport,
} from '../../src/report/json/index.js';
import { validateAuditsReport } from '../../src/report/validation/index.js';
import { renderAuditsPage } from '../../src/report/html/index.js';
import { renderAuditsJunit } from '../../src/report/junit/index.js';
import { renderAudits } from '../../src/report/text/index.js';
import { executionFailure, judgedCases, reports, someCases } from './cases.js';

const judged = (path: string, report: AuditedFile['report']): AuditedFile => ({
  path,
  report,
  error: null,
});
const unread: AuditedFile = {
  path: 'c.npz',
  report: null,
  error: 'c.npz: is empty; save it again',
};
const pass = judged('a.npz', judgedCases['pass'].report);
const fail = judged('b.npz', judgedCases['O × 1.5'].report);
const provenance = { version: '1.2.3', seconds: 2, created: new Date('2026-02-03T04:05:06.789Z') };
const reportOf = (...files: AuditedFile[]) => createAuditsReport(files, provenance);

describe('the report of several files', () => {
  it('passes where every file does, and counts all of them', () => {
    const verdicts = [[pass, pass], [pass, fail], [unread], [fail, unread, unread, pass]].map(
      (files) => reportOf(...files).verdict,
    );
    expect(verdicts.map(({ pass }) => pass)).toEqual([true, false, false, false]);
    expect(verdicts.map(({ sentence }) => sentence)).toEqual([
      'PASS: 2 files pass.',
      'FAIL: 1 file fails, 1 file passes.',
      'NOT JUDGED: 1 file cannot be judged.',
      'FAIL: 1 file fails, 2 files cannot be judged, 1 file passes.',
    ]);
    for (const { files, passed, failed, wrong } of verdicts)
      expect(passed + failed + wrong).toBe(files);
  });

  it('is none of no file', async () => {
    expect(reportOf().verdict.pass).toBe(false);
    await expect(validateAuditsReport(reportOf())).rejects.toThrow('/files');
  });

  it('has the worst share of all quantities, and the largest error of the output', () => {
    for (const [, one] of someCases) {
      const report = one.report as JudgedReport;
      const { share, label, largestError } = fileFigures(judged('x', report))!;
      const shares = new Map<string, number>([
        ['output', Number(mainOutput(report).elements.worstRatio)],
        ...numbersOf(report).map(({ label, numbers }): [string, number] => [
          label,
          Number(numbers.worstRatio),
        ]),
      ]);
      expect(share).toBe(Math.max(...shares.values()));
      expect(shares.get(label)).toBe(share);
      expect(largestError).toBe(Number(mainOutput(report).error.absolute.max));
    }
    expect(fileFigures(unread)).toBeNull();
  });

  it('says why a file does not pass, without its name and its word', () => {
    expect(fileReason(pass)).toBe('');
    expect(fileReason(unread)).toBe('is empty; save it again');
    expect(`${fileStatus(fail)}: ${fileReason(fail)}`).toBe(fail.report!.verdict.sentence);
  });

  it('is valid with every report that there is, and not where a file has both or neither', async () => {
    const files = reports.map(([name, report]) => judged(name, report));
    await validateAuditsReport(reportOf(...files, unread));
    for (const wrong of [
      { ...pass, error: 'no' },
      { ...unread, error: null },
      { ...pass, surplus: 1 },
      { path: 'x', report: null },
    ])
      await expect(validateAuditsReport({ ...reportOf(pass), files: [wrong] })).rejects.toThrow(
        '/files/0',
      );
  });

  it('has a test case a file and quantity, errors apart from failures', () => {
    const noLse = judged('d.npz', judgedCases['pass without LSE'].report);
    const xml = renderAuditsJunit(
      reportOf(pass, fail, unread, noLse, judged('e.npz', executionFailure)),
    );
    const cases = [...xml.matchAll(/<testcase name="([^"]*)" classname="([^"]*)"/g)];
    expect(cases.map(([, name, file]) => `${file} ${name}`)).toEqual([
      ...['a.npz output', 'a.npz LSE', 'b.npz output', 'b.npz LSE'],
      ...['c.npz file', 'c.npz output', 'c.npz LSE', 'd.npz output', 'd.npz LSE'],
      ...['e.npz execution', 'e.npz output', 'e.npz LSE'],
    ]);
    const count = (name: string) => xml.split(`<${name} `).length - 1;
    const [, tests, failures, errors, skipped] =
      /tests="(\d+)" failures="(\d+)" errors="(\d+)" skipped="(\d+)"/.exec(xml)!.map(Number);
    expect([tests, failures, errors, skipped]).toEqual([
      cases.length,
      count('failure'),
      count('error'),
      count('skipped'),
    ]);
    expect(errors).toBe(1);
    expect(failures).toBeGreaterThanOrEqual(2);
  });

  it('writes file names so that they act on nothing', () => {
    const evil = { ...unread, path: '<img src=x>\u001b[31m', error: '</script>\u001b[31m' };
    const text = renderAudits(reportOf(evil, pass));
    expect(text).not.toContain('\u001b');
    const html = renderAuditsPage(reportOf(evil, pass), () => 'x-files/a b#1.html');
    expect(html).not.toMatch(/<img|<script|\u001b/);
    expect(html).toContain('href="x-files/a%20b%231.html"');
    for (const line of renderAudits(reportOf(pass, fail, evil), { columns: 60 }).split('\n'))
      expect(line.length).toBeLessThanOrEqual(60);
  });
});
