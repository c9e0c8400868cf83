/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Clipboard } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useState } from 'react';

/**
 * A button that copies a text and says that it did.
 */
export function Copy(props: {
  text: string;
  label: string;
  trans: TranslationBundle;
}): JSX.Element {
  const [copied, setCopied] = useState(false);
  useEffect(() => setCopied(false), [props.text]);
  return (
    <>
      <button
        type="button"
        className="jp-Pause-button jp-mod-styled"
        onClick={() => {
          Clipboard.copyToSystem(props.text);
          setCopied(true);
        }}
      >
        {props.label}
      </button>
      <span role="status" className="jp-Pause-detail">
        {copied ? ` ${props.trans.__('Copied.')}` : ''}
      </span>
    </>
  );
}
