/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

declare module '*.svg' {
  const value: string;
  export default value;
}
