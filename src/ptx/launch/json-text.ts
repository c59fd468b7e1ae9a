import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';

/** The parsed JSON. @throws RequestError for a text that is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RequestError(
      `is no JSON: ${plainText((error as Error).message.slice(0, 200))}; write one object`,
    );
  }
}

/** The first violation of a schema, in words: its place in `whole`, and the fault there. */
export function violationOf(errors: ValidateFunction['errors'], whole: string): string {
  const [first] = errors ?? [];
  const { instancePath, message, params } = first as ErrorObject;
  const member = (params as Readonly<Record<string, unknown>>).additionalProperty;
  const place = plainText(
    instancePath
      .slice(1)
      .replace(/\/(\d+)/g, '[$1]')
      .replaceAll('/', '.'),
  );
  const text =
    typeof member === 'string'
      ? `has no member "${plainText(member)}"; leave it out`
      : (message ?? '');
  return `${place === '' ? whole : place} ${text}`;
}
