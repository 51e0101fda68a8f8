# The image of the action (action.yml): the bot with its models and templates, git and pip. It has the packages of the extra
# `run`, so that the key `run: failing` works. No compiler is in it: the
# configuration says which ones, and the bot fetches them at run time into the directory of the input `cache`.
# The digest is the multi-platform index of the tag; the tag is there for the reader.
FROM python:3.13.13-slim-bookworm@sha256:355bfa66770995d7e9a0da4b3473b44d0cb451f6b56f5615ad9c39e3c4eca03f AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements.txt ./
RUN python -m venv /opt/bot \
 && /opt/bot/bin/pip install --only-binary=:all: --require-hashes --requirement requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY bot ./bot
COPY configs ./configs
COPY templates ./templates
# setuptools comes from the lock as well, so that the build fetches nothing by itself; the image does not need it.
RUN /opt/bot/bin/pip install --no-deps --no-build-isolation . \
 && /opt/bot/bin/pip uninstall --yes setuptools

FROM python:3.13.13-slim-bookworm@sha256:355bfa66770995d7e9a0da4b3473b44d0cb451f6b56f5615ad9c39e3c4eca03f

LABEL org.opencontainers.image.title="code-size-bot" \
      org.opencontainers.image.description="What did this change do to the size of the code that IREE compiles?" \
      org.opencontainers.image.licenses="Apache-2.0"

# Python 3.11 beside this one loads the MLIR bindings of compilers that are built for it alone, as IREE's own CI does.
# libstdc++6 demangles the names of C++ functions.
# hadolint ignore=DL3008 # Debian's mirrors keep only the newest version of a package: a pin breaks with the next fix
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git libstdc++6 python3.11 \
 && rm -rf /var/lib/apt/lists/*

COPY --from=build /opt/bot /opt/bot
ENV PATH=/opt/bot/bin:$PATH \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# No USER: the workspace belongs to the runner's user, and a Docker action has to run as root to write to it.
ENTRYPOINT ["code-size-bot"]
