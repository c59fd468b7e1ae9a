import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { RequestError } from '../../../src/request-error.js';
import { capturedKernel } from '../../fixtures/captured-ptx.js';
import { scaled } from '../../setup/effort.js';
import { printModule } from './print-module.js';
import { withoutPlaces } from './ptx-text.js';
import { randomModule } from './random-module.js';

/** What may be between two tokens: white space, and comments with anything in them. */
const separator = fc.constantFrom(' ', '\n', '\t\r\n', '/* } ; " */', '// { @ "\n');

/** Parses, and takes a refusal for an answer. @throws what is no RequestError of one line with a place */
function parseOrRefuse(text: string): void {
  try {
    parsePtx(text);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    expect(error.message).toMatch(/^PTX, line \d+, column \d+: [^\n]+$/);
    expect(error.message.length).toBeLessThan(400);
  }
}

describe('a random module', () => {
  it('is the same once printed and parsed', () => {
    fc.assert(
      fc.property(randomModule, (module) => {
        expect(withoutPlaces(parsePtx(printModule(module)))).toEqual(withoutPlaces(module));
      }),
      { numRuns: scaled(80) },
    );
  });

  it('is the same whatever separates its tokens', () => {
    fc.assert(
      fc.property(
        randomModule,
        fc.array(separator, { minLength: 7, maxLength: 7 }),
        (module, between) => {
          let count = 0;
          const text = printModule(module).replace(
            /(?<!")[ \n](?!")/g,
            (blank) => blank + (between[count++ % between.length] ?? ''),
          );
          expect(withoutPlaces(parsePtx(text))).toEqual(withoutPlaces(module));
        },
      ),
      { numRuns: scaled(40) },
    );
  });

  it('has errors where they are: what is cut off is missed at its end', () => {
    fc.assert(
      fc.property(randomModule, fc.nat(), (module, at) => {
        const text = printModule(module);
        parseOrRefuse(text.slice(0, at % (text.length + 1)));
      }),
      { numRuns: scaled(80) },
    );
  });
});

describe('a text that is damaged', () => {
  const { ptx } = capturedKernel('nvcc-calls');
  const beginning = ptx.indexOf('.address_size 64') + 16;

  it('is refused in one line, or is a module', () => {
    const scrap = fc.constantFrom(
      ...[
        '{',
        '}',
        '(',
        ')',
        '[',
        ']',
        ';',
        ',',
        '.',
        '@',
        '"',
        '/*',
        '//',
        '%',
        '-',
        '0x',
        '\0',
        '\ud800',
        '::',
        '<',
        '=',
        ' 9e999 ',
      ],
    );
    const damage = fc.tuple(fc.nat(), fc.nat(40), scrap);
    fc.assert(
      fc.property(
        fc.nat(ptx.length - 2500),
        fc.array(damage, { minLength: 1, maxLength: 4 }),
        (start, damages) => {
          let text = ptx.slice(start, start + 2500);
          for (const [at, length, mark] of damages) {
            const index = at % text.length;
            text = text.slice(0, index) + mark + text.slice(index + length);
          }
          parseOrRefuse(`${ptx.slice(0, beginning)}\n.entry k() {\n${text}`);
          parseOrRefuse(text);
        },
      ),
      { numRuns: scaled(200) },
    );
  });

  it('of no PTX at all is refused too', () => {
    const units = fc.array(fc.nat(0xffff), { maxLength: 60 });
    fc.assert(
      fc.property(units, (codes) => parseOrRefuse(String.fromCharCode(...codes))),
      { numRuns: scaled(100) },
    );
  });
});
