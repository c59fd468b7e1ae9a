import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'src/report/json');
const suffix = '.schema.json';
const recordFile = 'test/report/schema-versions.json';

interface Schema {
  readonly $id: string;
  readonly properties: { readonly schemaVersion: { readonly const: number } };
  readonly required: readonly string[];
}
/** The versions that a schema has had, oldest first. */
type Versions = readonly {
  readonly version: number;
  /** The version of the package that has it first. */
  readonly since: string;
  readonly sha256: string;
}[];

const names = readdirSync(folder).flatMap((file) =>
  file.endsWith(suffix) ? [file.slice(0, -suffix.length)] : [],
);
const textOf = (name: string) => readFileSync(join(folder, `${name}${suffix}`), 'utf8');
const schemaOf = (name: string) => JSON.parse(textOf(name)) as Schema;
const record = JSON.parse(readFileSync(join(root, recordFile), 'utf8')) as Readonly<
  Record<string, Versions>
>;

/** The hash of what a schema accepts: not of its layout, and not of the words for its readers. */
function hashOfMeaning(text: string): string {
  const meaning = JSON.stringify(JSON.parse(text), (key, value: unknown) =>
    (key === 'title' || key === 'description') && typeof value === 'string' ? undefined : value,
  );
  return createHash('sha256').update(meaning).digest('hex');
}

describe('the published schemas', () => {
  it('are all on record', () => {
    expect(Object.keys(record).sort()).toEqual(names.sort());
  });

  for (const name of names) {
    it(`${name}: its identifier and every document carry its version`, () => {
      const { $id, properties, required } = schemaOf(name);
      expect(required).toContain('schemaVersion');
      expect($id).toMatch(new RegExp(`^urn:flashproof:[a-z-]+:${properties.schemaVersion.const}$`));
    });

    it(`${name}: what it accepts changes with its version alone`, () => {
      const versions = record[name] ?? [];
      const numbers = versions.map(({ version }) => version);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
      const latest = versions.at(-1);
      const { version, sha256 } = {
        version: schemaOf(name).properties.schemaVersion.const,
        sha256: hashOfMeaning(textOf(name)),
      };
      const mend =
        `${name}${suffix} accepts something else than version ${latest?.version} on record in ${recordFile}. If that was published, ` +
        `count up schemaVersion and $id and add { "version": …, "sha256": "${sha256}" }; if not yet, record this hash`;
      expect({ version, sha256 }, mend).toEqual({
        version: latest?.version,
        sha256: latest?.sha256,
      });
    });
  }

  it('are the same whatever their words and layout', () => {
    const [name = ''] = names;
    const text = textOf(name);
    const reworded = JSON.stringify({ ...(JSON.parse(text) as object), title: 'Other words' });
    expect(hashOfMeaning(reworded)).toBe(hashOfMeaning(text));
    const narrowed = JSON.stringify({ ...(JSON.parse(text) as object), minProperties: 1 });
    expect(hashOfMeaning(narrowed)).not.toBe(hashOfMeaning(text));
  });
});
