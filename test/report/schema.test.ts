import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { levels } from '../../oracles/index.js';
import { structureScopes, structureTests } from '../../src/audit/index.js';
import { formats } from '../../src/formats/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { RequestError } from '../../src/request-error.js';
import { everyReport, executionFailure, judgedCases, reports, withOutput } from './cases.js';
import { compiledPath } from '../setup/native-sources.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/report.schema.json', import.meta.url), 'utf8'),
) as JsonObject;

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema behind a reference into $defs, with the reference's own annotations. */
function resolved(part: JsonObject): JsonObject {
  const branches = (part['anyOf'] as JsonObject[] | undefined)?.find((branch) => '$ref' in branch);
  const name = (part['$ref'] ?? branches?.['$ref']) as string | undefined;
  if (name === undefined) return part;
  const defined = (schema['$defs'] as JsonObject)[name.replace('#/$defs/', '')] as JsonObject;
  return { ...defined, ...part };
}

/** Every described place of the schema, array items as "[]". */
function* schemaPlaces(part: JsonObject, path = ''): Generator<readonly [string, JsonObject]> {
  const whole = resolved(part);
  yield [path, whole];
  for (const [key, value] of Object.entries((whole['properties'] ?? {}) as JsonObject))
    yield* schemaPlaces(value as JsonObject, `${path}/${key}`);
  if (isObject(whole['items'])) yield* schemaPlaces(whole['items'], `${path}/[]`);
}

/** Every place of a value: its JSON pointer, the object or array it is in, and its key there. */
function* places(
  value: Json,
  pointer = '',
): Generator<readonly [pointer: string, holder: JsonObject | Json[], key: string]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    yield [`${pointer}/${key}`, value, key];
    yield* places(item, `${pointer}/${key}`);
  }
}

/** The message of the error that a report is rejected with. */
async function rejection(report: unknown): Promise<string> {
  const error: unknown = await validateReport(report).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(RequestError);
  return (error as Error).message;
}

/** Copies of a report, each changed at one place by `change`; null leaves the place out. */
function* changedCopies(
  report: unknown,
  change: (holder: JsonObject, key: string) => boolean,
): Generator<readonly [pointer: string, copy: Json]> {
  const text = JSON.stringify(report);
  const pointers = [...places(JSON.parse(text) as Json)].map(([pointer]) => pointer);
  for (const pointer of pointers) {
    const copy = JSON.parse(text) as Json;
    const [, holder, key] = [...places(copy)].find(([at]) => at === pointer)!;
    if (!Array.isArray(holder) && change(holder, key)) yield [pointer, copy];
  }
}

/** Places that are left out where a problem has nothing of the kind, or where another is instead. */
const optional =
  /^\/(problem\/features(\/[a-zA-Z]+)?|sequences|keyTiles|gradients|sample\/statistics)$|\/(at|first|firstNonFinite)\/sequence$|^(?!.*\/numbers\/).*\/(at|firstNonFinite)\/(query|key|column)$/;

/**
 * Places of outputs are described as those of gradients are, which may be of keys, of heads, of a bias. And premises are fitted
 * where that is asked for (test/cli/audit-gradients.test.ts), which takes five audits.
 */
const ofGradientsOnly = /^\/(outputs|comparison)\/.*\/key$|^\/gradients\/fits\/\[\]$/;

/** Reports that together have every property there is, with results of every kind. */
const complete = [
  judgedCases['LSE with NaN and off'].report,
  judgedCases['infinity in O'].report,
  executionFailure,
];

describe('the schema', () => {
  test.each(reports)('accepts the report of: %s', async (_, report) => {
    await validateReport(report);
    await validateReport(JSON.parse(JSON.stringify(report)));
  });

  test('describes every property and closes every object', () => {
    for (const [path, part] of schemaPlaces(schema)) {
      expect(part['title'], `title of ${path}`).toEqual(expect.stringMatching(/\S/));
      expect(part['description'], `description of ${path}`).toEqual(expect.stringMatching(/\.$/));
      if (part['properties'] === undefined) continue;
      expect(part['additionalProperties'], path).toBe(false);
      const required = Object.keys(part['properties'] as JsonObject).filter(
        (key) => !optional.test(`${path}/${key}`),
      );
      expect(part['required'] ?? [], path).toEqual(required);
    }
  });

  inTurn('has no property that no report has', () => {
    const used = new Set(
      Object.values(everyReport).flatMap((report) =>
        [...places(JSON.parse(JSON.stringify(report)) as Json)].map(([pointer]) =>
          pointer.replace(/\/\d+(?=\/|$)/g, '/[]'),
        ),
      ),
    );
    const described = [...schemaPlaces(schema)].map(([path]) => path).filter((path) => path !== '');
    const unused = described.filter((path) => !used.has(path) && !ofGradientsOnly.test(path));
    expect(unused).toEqual([]);
  });

  test('names the same tests, scopes, formats and levels as the code', () => {
    const byPath = new Map(schemaPlaces(schema));
    const allowed = (path: string) => {
      const part = byPath.get(path)!;
      return part['enum'] ?? (part['anyOf'] as JsonObject[])[0]['enum'];
    };
    expect(allowed('/outputs/[]/structure/[]/test')).toEqual([...structureTests]);
    expect(allowed('/outputs/[]/structure/[]/scope')).toEqual([...structureScopes]);
    expect([...(allowed('/problem/formats/q') as string[])].sort()).toEqual(
      Object.keys(formats).sort(),
    );
    expect(byPath.get('/oracle/rows')!['required']).toEqual([...levels]);
    expect(allowed('/verdict/findings/[]/test')).toEqual(
      expect.arrayContaining([...structureTests]),
    );
  });

  test('rejects a report without any one of its properties, and names it', async () => {
    for (const report of complete)
      for (const [pointer, copy] of changedCopies(report, (holder, key) => delete holder[key])) {
        const message = await rejection(copy);
        const slash = pointer.lastIndexOf('/');
        expect(message).toContain(`${pointer.slice(0, slash) || '/'} must have required property`);
        expect(message).toContain(`'${pointer.slice(slash + 1)}'`);
      }
  });

  test('rejects a property that it does not know, and names it', async () => {
    for (const report of complete)
      for (const [pointer, copy] of changedCopies(report, (holder) => {
        holder['surplus'] = 1;
        return true;
      })) {
        const message = await rejection(copy);
        const holder = pointer.slice(0, pointer.lastIndexOf('/')) || '/';
        expect(message).toContain(`${holder} must NOT have additional properties ("surplus")`);
      }
  });

  inTurn('rejects values of the wrong type at every place, and names the place', async () => {
    const wrong: Json[] = [[7], 'nonsense', -0.5, true, { a: 1 }];
    const type = (of: Json) => (Array.isArray(of) ? 'array' : typeof of);
    // Places that hold more than one type: numbers of either sign that may be "NaN", and texts that
    // may be null.
    const signed =
      /^\/(outputs\/\d\/(error|structure|numbers)|baselines)\/.*\/(mean|similarity|slope|output|oracle|value|statistic)$/;
    const optionalText = /\/(command|path|technique|quantity)$/;
    for (const report of complete)
      for (const value of wrong) {
        const replace = (holder: JsonObject, key: string) => {
          if (type(holder[key]!) === type(value)) return false;
          holder[key] = value;
          return true;
        };
        for (const [pointer, copy] of changedCopies(report, replace)) {
          if (typeof value === 'number' && signed.test(pointer)) continue;
          if (typeof value === 'string' && optionalText.test(pointer)) continue;
          expect(await rejection(copy), `${pointer} = ${JSON.stringify(value)}`).toContain(pointer);
        }
      }
  });

  test('rejects raw NaN and infinities, and strings that are no number', async () => {
    const { report } = judgedCases['pass'];
    const withElements = (change: object) =>
      withOutput(report, (output) => ({
        ...output,
        elements: { ...output.elements, ...change },
      }));
    for (const value of [NaN, Infinity, -Infinity, 'nan', '1', ''])
      for (const part of ['worstRatio', 'medianRatio', 'outside'])
        expect(await rejection(withElements({ [part]: value }))).toContain(`/elements/${part}`);
    expect(await rejection(withElements({ worstRatio: -1 }))).toContain('/elements/worstRatio');
    await validateReport(withElements({ worstRatio: 'Infinity' }));
  });

  test('rejects reports that contradict themselves', async () => {
    const pass = judgedCases['pass'].report;
    const fail = judgedCases['O × 1.5'].report;
    expect(await rejection({ ...pass, verdict: { ...pass.verdict, pass: false } })).toContain(
      '/verdict/findings',
    );
    expect(await rejection({ ...fail, verdict: { ...fail.verdict, pass: true } })).toContain(
      '/verdict/findings',
    );
    expect(await rejection({ ...pass, outputs: [] })).toContain('/outputs must NOT have fewer');
    for (const part of ['error', 'structure', 'elements', 'spread'] as const)
      expect(
        await rejection(withOutput(pass, (output) => ({ ...output, [part]: null }))),
      ).toContain(`/outputs/0/${part}`);
    const [out, lse] = pass.outputs!;
    for (const [row, other] of [
      [out, { numbers: lse.numbers }],
      [lse, { error: out.error }],
      [lse, { numbers: null }],
    ] as const)
      expect(await rejection({ ...pass, outputs: [{ ...row, ...other }] })).toContain(
        '/outputs/0/',
      );
    for (const part of ['baselines', 'oracle', 'falseAlarmRate'] as const) {
      expect(await rejection({ ...pass, [part]: null })).toContain(`/${part}`);
      expect(await rejection({ ...executionFailure, [part]: pass[part] })).toContain(`/${part}`);
    }
    expect(await rejection({ ...pass, outputs: null })).toContain('/baselines');
    expect(await rejection({ ...executionFailure, outputs: pass.outputs })).toContain('/baselines');
  });

  test('rejects a diagnosis of a pass', async () => {
    const pass = judgedCases['pass'].report;
    const { diagnosis } = judgedCases['O × 1.5'].report.verdict;
    expect(await rejection({ ...pass, verdict: { ...pass.verdict, diagnosis } })).toContain(
      '/verdict/diagnosis',
    );
  });

  test('lists no more violations than one can read', async () => {
    expect(await rejection({})).toMatch(/; and \d+ more$/);
    for (const value of [null, 1, 'report', []]) expect(await rejection(value)).toContain('/ must');
  });
});

inTurn('ajv is loaded by the first validation and not before', () => {
  const module = pathToFileURL(compiledPath('src/report/validation/index.ts'));
  // A process of its own has loaded nothing yet; ajv is one of its CommonJS modules.
  const program = `
    import { createRequire } from 'node:module';
    const { validateReport } = await import(${JSON.stringify(module)});
    const loads = () => Object.keys(createRequire(${JSON.stringify(module)}).cache);
    const isLoaded = () => loads().some((path) => /[\\\\/]ajv[\\\\/]/.test(path));
    const before = isLoaded();
    await validateReport(${JSON.stringify(executionFailure)});
    console.log(before, isLoaded());`;
  const words = ['--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect(stdout, stderr).toBe('false true\n');
});

test('the other schemas refer to what the audit report has', async () => {
  const { validateBoundReport, validateCheckReport } =
    await import('../../src/report/validation/index.js');
  await expect(validateBoundReport({})).rejects.toThrow(/breaks bound\.schema\.json/);
  await expect(validateCheckReport({})).rejects.toThrow(/breaks check\.schema\.json/);
});
