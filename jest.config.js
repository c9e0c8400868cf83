const jestJupyterLab = require('@jupyterlab/testing/lib/jest-config');

const base = jestJupyterLab(__dirname);
// Packages that ship modules only.
const esModules = [
  '@codemirror',
  '@jupyter',
  '@jupyterlab',
  '@lezer',
  '@marijn',
  '@microsoft',
  '@rjsf',
  'color',
  'd3',
  'delaunator',
  'exenv-es6',
  'fast',
  'internmap',
  'lib0',
  'lodash-es',
  'marked',
  'nanoid',
  'p-map',
  'robust-predicates',
  'vscode-ws-jsonrpc',
  'y-protocols',
  'y-websocket',
  'yjs'
].join('|');

module.exports = {
  ...base,
  coverageDirectory: 'coverage',
  coverageReporters: ['text-summary', 'lcov'],
  collectCoverageFrom: [
    'src/**/*.{ts,tsx}',
    '!src/**/*.d.ts',
    '!src/api/types.ts',
    '!src/**/__tests__/**'
  ],
  modulePathIgnorePatterns: ['<rootDir>/jupyter_pause/', '<rootDir>/lib/'],
  reporters: ['default'],
  // Jest's own limit is for hangs; a busy machine must not decide a test.
  testTimeout: 60000,
  roots: ['<rootDir>/src'],
  testRegex:
    'src/.*/__tests__/.*\\.spec\\.tsx?$|src/__tests__/.*\\.spec\\.tsx?$',
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
