/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import React, { useId, useState } from 'react';

/**
 * One section of the panel's accordion: a heading with a button, and a region that it shows and hides.
 */
export function Section(props: {
  title: string;
  count?: string;
  open?: boolean;
  children: React.ReactNode;
}): JSX.Element {
  const [open, setOpen] = useState(props.open ?? true);
  const id = useId();
  const Caret = open ? caretDownIcon : caretRightIcon;
  return (
    <div className="jp-Pause-section">
      <h3 className="jp-Pause-sectionTitle">
        <button
          type="button"
          id={`${id}-title`}
          aria-expanded={open}
          aria-controls={`${id}-body`}
          onClick={() => setOpen(!open)}
        >
          <Caret.react tag="span" width="16px" height="16px" />
          <span className="jp-Pause-sectionName">{props.title}</span>
          {props.count && (
            <span className="jp-Pause-sectionCount">{props.count}</span>
          )}
        </button>
      </h3>
      <div
        role="region"
        id={`${id}-body`}
        aria-labelledby={`${id}-title`}
        className="jp-Pause-sectionBody"
        hidden={!open}
      >
        {open && props.children}
      </div>
    </div>
  );
}
