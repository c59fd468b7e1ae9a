import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Places of what narrows an object that is described around it. */
const narrows = /\/(oneOf|anyOf|allOf)\/\d+$|\/properties$/;

/** The objects anywhere in a schema, with their places. */
function* objectsOf(part: Json, place = ''): Generator<readonly [string, Record<string, Json>]> {
  if (typeof part !== 'object' || part === null) return;
  const whole = part as Record<string, Json>;
  if (whole['type'] === 'object' || ('properties' in whole && !narrows.test(place)))
    yield [place, whole];
  for (const [key, value] of Object.entries(whole)) yield* objectsOf(value, `${place}/${key}`);
}

test('the schema of reports on linear attention closes every object', () => {
  const path = 'src/report/json/recurrent.schema.json';
  const schema = JSON.parse(readFileSync(path, 'utf8')) as Json;
  const found = [...objectsOf(schema)];
  expect(found.length).toBeGreaterThan(5);
  for (const [place, part] of found) expect(part['additionalProperties'], place).toBe(false);
});
